package storetest

import (
	"testing"

	"leasehold/channel"
	"leasehold/delivery/outbound"
)

// named takes up a message about the id, and compares what comes with it.
func (w *world) named(t channel.Term, n int, id string, wanted *outbound.Named) {
	w.Helper()
	m := letter(n)
	m.Op, m.MessageID = "edit", id
	got, err := w.s.BeginSending(w.ctx, t, w.post(m).Seq)
	w.must(err)
	want(w, "message id", got.MessageID, id)
	want(w, "whether "+id+" is ours", got.Named != nil, wanted != nil)
	if got.Named != nil && wanted != nil {
		want(w, "state of "+id, got.Named.State, wanted.State)
		want(w, "receipt of "+id, string(got.Named.Receipt), string(wanted.Receipt))
	}
}

func (r *runner) namedMessages(t *testing.T) {
	r.promise(t, "what a message is about comes with it, where that is a message of the same installation", func(w *world) {
		s := w.node()
		term := w.hold("i")
		w.put("j")
		other := letter(1)
		other.Installation = "j"
		w.post(other)
		receipt := []byte(`{"message_id":"17"}`)
		w.must(s.EndSending(w.ctx, outbound.End{Term: term, Seq: w.sending(term, 2), State: outbound.Sent, Receipt: receipt}))
		w.post(letter(3))
		w.sending(term, 4)
		w.named(term, 11, "out_1", nil)
		w.named(term, 12, "out_2", &outbound.Named{State: outbound.Sent, Receipt: receipt})
		w.named(term, 13, "out_3", &outbound.Named{State: outbound.Queued})
		w.named(term, 14, "out_4", &outbound.Named{State: outbound.Sending})
		w.named(term, 15, "out_\xe4\\ is bytes", nil)
		w.named(term, 16, "", nil)
	})
}
