-- +goose Up

-- A program that knows no messages leaves them waiting: min_reader stays.
CREATE TABLE message (
  seq             INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT    NOT NULL,
  installation_id TEXT    NOT NULL,
  lease_id        TEXT    NOT NULL,             -- the carrier's, for a rider
  idempotency_key TEXT    NOT NULL,
  op              TEXT    NOT NULL,
  conversation    TEXT    NOT NULL,
  thread          TEXT    NOT NULL,
  message_id      TEXT    NOT NULL,             -- what the op refers to
  state           INTEGER NOT NULL DEFAULT 0,
  epoch           INTEGER NOT NULL DEFAULT 0,   -- under which it was last written
  attempts        INTEGER NOT NULL DEFAULT 0,
  doubt           INTEGER NOT NULL DEFAULT 0,   -- an earlier try may have been taken
  next_attempt    INTEGER NOT NULL DEFAULT 0,
  last_error      TEXT    NOT NULL DEFAULT '',
  receipt         TEXT    NOT NULL DEFAULT '',
  created_at      INTEGER NOT NULL,
  expires_at      INTEGER NOT NULL,
  ended_at        INTEGER NOT NULL DEFAULT 0,
  body            BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX message_id ON message(id);
CREATE UNIQUE INDEX message_key ON message(installation_id, idempotency_key) WHERE idempotency_key <> '';
CREATE INDEX message_waiting ON message(lease_id, seq) WHERE state < 2;
