// Package outbound brings a message from queued to sent: what the user's program
// asked for is stored first (by whoever posts it, see Message), then sent once by
// the holder of the installation's lease, through its live connection.
//
// It promises that a message is in one of six states whose words mean what they
// say. What is sent was taken by the platform; what expired or was refused never
// was. A message is tried again only when it surely was not sent; when that cannot
// be told, because the answer was lost or we died in between, it is unknown, and
// it is never sent a second time, unless the platform itself drops the second one.
// Of one conversation, messages go one at a time, in the order in which they were
// posted. Of the edits of one message that wait, the newest alone is sent.
//
// It knows no database (see Postbox) and no platform: a Sender is lent to it while
// a connection lives. A lease without messages costs a map entry: no goroutine, no
// read, no write.
package outbound
