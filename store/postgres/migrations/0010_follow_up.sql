-- +goose Up

-- Where platforms take the answers to events for a while, sealed. A program that does
-- not know these tables leaves them alone: min_reader stays.
CREATE TABLE follow_up (
  event_seq  bigint PRIMARY KEY,
  expires_at bigint NOT NULL,
  sealed     bytea  NOT NULL
);

CREATE INDEX follow_up_expiry ON follow_up(expires_at);

-- What they are sealed with: keys that are sealed themselves, with the master key.
CREATE TABLE follow_up_key (
  id         text COLLATE "C" PRIMARY KEY,
  sealed     bytea  NOT NULL,
  created_at bigint NOT NULL
);
