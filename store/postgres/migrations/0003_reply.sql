-- +goose Up

-- The event that a message answers; 0 = none.
ALTER TABLE message ADD COLUMN event_seq bigint NOT NULL DEFAULT 0;

CREATE INDEX message_event ON message(event_seq) WHERE event_seq <> 0;
