-- +goose Up

-- Where platforms take the answers to events for a while, sealed. A program that does
-- not know these tables leaves them alone: min_reader stays.
CREATE TABLE follow_up (
  event_seq  INTEGER PRIMARY KEY,
  expires_at INTEGER NOT NULL,
  sealed     BLOB    NOT NULL
) STRICT;

CREATE INDEX follow_up_expiry ON follow_up(expires_at);

-- What they are sealed with: keys that are sealed themselves, with the master key.
CREATE TABLE follow_up_key (
  id         TEXT    NOT NULL PRIMARY KEY,
  sealed     BLOB    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
