-- +goose Up

-- Times are integer milliseconds since 1970, 0 where there is none. Text keys
-- make WITHOUT ROWID tables; STRICT everywhere.

-- "LSHD": what tells our file from another program's.
PRAGMA application_id = 1280526404;

CREATE TABLE schema_info (
  id         INTEGER PRIMARY KEY CHECK (id = 1),
  store_id   TEXT    NOT NULL,
  min_reader INTEGER NOT NULL,             -- the oldest schema whose program may use this one
  created_at INTEGER NOT NULL,
  host       TEXT    NOT NULL DEFAULT ''   -- of the last sole session: tells a new boot of the machine
) STRICT;

INSERT INTO schema_info(id, store_id, min_reader, created_at)
VALUES (1, lower(hex(randomblob(16))), 1, CAST(unixepoch('subsec') * 1000 AS INTEGER));

CREATE TABLE schema_file (
  version    INTEGER PRIMARY KEY,
  name       TEXT    NOT NULL,
  sha256     TEXT    NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE installation (
  id          TEXT    NOT NULL PRIMARY KEY,
  type        TEXT    NOT NULL,
  via         TEXT    NOT NULL,             -- rides on this one's connection
  config      TEXT    NOT NULL,
  labels      TEXT    NOT NULL,
  targets     TEXT    NOT NULL,
  fingerprint TEXT    NOT NULL,
  identity    TEXT    NOT NULL,
  enabled     INTEGER NOT NULL,
  removed     INTEGER NOT NULL DEFAULT 0,   -- a tombstone, until its backlog is delivered
  source      TEXT    NOT NULL,
  revision    INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX installation_via ON installation(via) WHERE via <> '';
CREATE INDEX installation_identity ON installation(type, identity) WHERE identity <> '';

CREATE TABLE session (
  session_id  TEXT    NOT NULL PRIMARY KEY,
  instance_id TEXT    NOT NULL UNIQUE,
  seq         INTEGER NOT NULL,
  expires_at  INTEGER,                      -- NULL: a sole owner's never expires
  host        TEXT    NOT NULL,
  name        TEXT    NOT NULL,
  version     TEXT    NOT NULL,
  weight      INTEGER NOT NULL,
  draining    INTEGER NOT NULL,
  opened_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE lease (
  id         TEXT    NOT NULL PRIMARY KEY,
  owner      TEXT,
  epoch      INTEGER NOT NULL DEFAULT 0,
  run        INTEGER NOT NULL DEFAULT 0,
  fails      INTEGER NOT NULL DEFAULT 0,
  not_before INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE link_status (
  installation_id TEXT    NOT NULL PRIMARY KEY,
  epoch           INTEGER NOT NULL,
  state           TEXT    NOT NULL,
  reason          TEXT    NOT NULL,
  detail          TEXT    NOT NULL,
  since           INTEGER NOT NULL,
  attempts        INTEGER NOT NULL,
  next_attempt    INTEGER NOT NULL,
  last_ready      INTEGER NOT NULL,
  last_event      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Keyed by the platform identity too: another bot under the same id inherits no position.
CREATE TABLE cursor (
  lease_id TEXT    NOT NULL,
  identity TEXT    NOT NULL,
  epoch    INTEGER NOT NULL,
  value    BLOB    NOT NULL,
  PRIMARY KEY (lease_id, identity)
) STRICT, WITHOUT ROWID;

-- AUTOINCREMENT: a seq is never given twice, not even after a sweep. The body
-- stands last, so that the sweeper reads no overflow pages.
CREATE TABLE event (
  seq             INTEGER PRIMARY KEY AUTOINCREMENT,
  installation_id TEXT    NOT NULL,
  lease_id        TEXT    NOT NULL,
  event_id        TEXT    NOT NULL,
  epoch           INTEGER NOT NULL,
  owner           TEXT    NOT NULL,
  type            TEXT    NOT NULL,
  conversation    TEXT    NOT NULL,
  thread          TEXT    NOT NULL,
  occurred_at     INTEGER NOT NULL,
  accepted_at     INTEGER NOT NULL,
  body            BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX event_dedupe ON event(installation_id, event_id);

CREATE TABLE delivery (
  event_seq    INTEGER NOT NULL,
  target       TEXT    NOT NULL,
  lease_id     TEXT    NOT NULL,
  epoch        INTEGER NOT NULL,
  webhook_id   TEXT    NOT NULL,            -- its first part is event_seq: no index finds it
  state        INTEGER NOT NULL DEFAULT 0,
  attempts     INTEGER NOT NULL DEFAULT 0,
  next_attempt INTEGER NOT NULL DEFAULT 0,
  ended_at     INTEGER NOT NULL DEFAULT 0,  -- delivered, dead or dropped
  replay       INTEGER NOT NULL DEFAULT 0,
  last_error   TEXT    NOT NULL DEFAULT '',
  PRIMARY KEY (event_seq, target)
) STRICT, WITHOUT ROWID;

CREATE INDEX delivery_pending ON delivery(lease_id, event_seq, target) WHERE state = 0;
CREATE INDEX delivery_dead ON delivery(event_seq, target) WHERE state = 2;

CREATE TABLE connect_budget (
  lease_id     TEXT    NOT NULL PRIMARY KEY,
  window_start INTEGER NOT NULL,
  used         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE task_run (
  task         TEXT    NOT NULL PRIMARY KEY,
  last_start   INTEGER NOT NULL,
  last_success INTEGER NOT NULL,
  failures     INTEGER NOT NULL,
  last_error   TEXT    NOT NULL,
  result       TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- Written and emptied by a probe.
CREATE TABLE probe (
  id     INTEGER PRIMARY KEY,
  filler BLOB    NOT NULL
) STRICT;

