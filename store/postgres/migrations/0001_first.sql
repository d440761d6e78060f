-- +goose Up

-- Times are bigint milliseconds since 1970, 0 where there is none. Keys compare
-- as bytes. What a platform says is bytea: text refuses a NUL and broken UTF-8,
-- and would fail every event of the same commit.

CREATE TABLE schema_info (
  id         smallint PRIMARY KEY CHECK (id = 1),
  store_id   text     NOT NULL,
  min_reader bigint   NOT NULL,            -- the oldest schema whose program may use this one
  created_at bigint   NOT NULL
);

INSERT INTO schema_info(id, store_id, min_reader, created_at)
VALUES (1, replace(gen_random_uuid()::text, '-', ''), 1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);

CREATE TABLE schema_file (
  version    bigint PRIMARY KEY,
  name       text   NOT NULL,
  sha256     text   NOT NULL,
  applied_at bigint NOT NULL
);

-- The one clock of every node. Not now(): that stands still within a transaction,
-- however long it waited for a lock.
CREATE FUNCTION leasehold_now() RETURNS bigint LANGUAGE sql VOLATILE
  AS 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint';

CREATE TABLE installation (
  id          text COLLATE "C" PRIMARY KEY,
  type        text    NOT NULL,
  via         text COLLATE "C" NOT NULL,    -- rides on this one's connection
  config      text    NOT NULL,
  labels      text    NOT NULL,
  targets     text    NOT NULL,
  fingerprint text    NOT NULL,
  identity    text    NOT NULL,
  enabled     boolean NOT NULL,
  removed     boolean NOT NULL DEFAULT false, -- a tombstone, until its backlog is delivered
  source      text    NOT NULL,
  revision    bigint  NOT NULL,
  created_at  bigint  NOT NULL,
  updated_at  bigint  NOT NULL
);

CREATE INDEX installation_via ON installation(via) WHERE via <> '';
CREATE INDEX installation_identity ON installation(type, identity) WHERE identity <> '';

-- Renewed all the time: half of each page is kept free, so that a new version of a
-- row fits beside the old one, and no index holds a column that a renewal changes.
CREATE TABLE session (
  session_id  text COLLATE "C" PRIMARY KEY,
  instance_id text COLLATE "C" NOT NULL UNIQUE,
  seq         bigint  NOT NULL,
  expires_at  bigint  NOT NULL,
  host        text    NOT NULL,
  name        text    NOT NULL,
  version     text    NOT NULL,
  weight      integer NOT NULL,
  draining    boolean NOT NULL,
  opened_at   bigint  NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE lease (
  id         text COLLATE "C" PRIMARY KEY,
  owner      text COLLATE "C",
  epoch      bigint  NOT NULL DEFAULT 0,
  run        bigint  NOT NULL DEFAULT 0,
  fails      integer NOT NULL DEFAULT 0,
  not_before bigint  NOT NULL DEFAULT 0
) WITH (fillfactor = 80);

CREATE TABLE link_status (
  installation_id text COLLATE "C" PRIMARY KEY,
  epoch           bigint  NOT NULL,
  state           text    NOT NULL,
  reason          text    NOT NULL,
  detail          text    NOT NULL,
  since           bigint  NOT NULL,
  attempts        integer NOT NULL,
  next_attempt    bigint  NOT NULL,
  last_ready      bigint  NOT NULL,
  last_event      bigint  NOT NULL
) WITH (fillfactor = 80);

-- Keyed by the platform identity too: another bot under the same id inherits no position.
CREATE TABLE cursor (
  lease_id text COLLATE "C" NOT NULL,
  identity text   NOT NULL,
  epoch    bigint NOT NULL,
  value    bytea  NOT NULL,
  PRIMARY KEY (lease_id, identity)
) WITH (fillfactor = 80);

CREATE TABLE event (
  seq             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  installation_id text COLLATE "C" NOT NULL,
  lease_id        text COLLATE "C" NOT NULL,
  event_id        bytea  NOT NULL,
  epoch           bigint NOT NULL,
  owner           text   NOT NULL,
  type            bytea  NOT NULL,
  conversation    bytea  NOT NULL,
  thread          bytea  NOT NULL,
  occurred_at     bigint NOT NULL,
  accepted_at     bigint NOT NULL,
  body            bytea  NOT NULL
);

-- An index entry has room for 2,700 bytes; a longer id is told by its digest. seq
-- comes along, so that an installation's newest are found in the index alone.
CREATE UNIQUE INDEX event_dedupe
  ON event(installation_id, (CASE WHEN length(event_id) <= 1024 THEN event_id ELSE sha256(event_id) END)) INCLUDE (seq);

CREATE TABLE delivery (
  event_seq    bigint   NOT NULL,
  target       text COLLATE "C" NOT NULL,
  lease_id     text COLLATE "C" NOT NULL,
  epoch        bigint   NOT NULL,
  webhook_id   text     NOT NULL,            -- its first part is event_seq: no index finds it
  state        smallint NOT NULL DEFAULT 0,
  attempts     integer  NOT NULL DEFAULT 0,
  next_attempt bigint   NOT NULL DEFAULT 0,
  ended_at     bigint   NOT NULL DEFAULT 0,  -- delivered, dead or dropped
  replay       boolean  NOT NULL DEFAULT false,
  last_error   text     NOT NULL DEFAULT '',
  PRIMARY KEY (event_seq, target)
);

CREATE INDEX delivery_pending ON delivery(lease_id, event_seq, target) WHERE state = 0;
CREATE INDEX delivery_replay ON delivery(lease_id) WHERE state = 0 AND replay;
CREATE INDEX delivery_dead ON delivery(event_seq, target) WHERE state = 2;

CREATE TABLE message (
  seq             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id              text COLLATE "C" NOT NULL UNIQUE,
  installation_id text COLLATE "C" NOT NULL,
  lease_id        text COLLATE "C" NOT NULL,   -- the carrier's, for a rider
  idempotency_key text     NOT NULL,
  op              text     NOT NULL,
  conversation    bytea    NOT NULL,
  thread          bytea    NOT NULL,
  message_id      bytea    NOT NULL,           -- what the op refers to
  state           smallint NOT NULL DEFAULT 0,
  epoch           bigint   NOT NULL DEFAULT 0, -- under which it was last written
  attempts        integer  NOT NULL DEFAULT 0,
  doubt           boolean  NOT NULL DEFAULT false, -- an earlier try may have been taken
  next_attempt    bigint   NOT NULL DEFAULT 0,
  last_error      text     NOT NULL DEFAULT '',
  receipt         bytea    NOT NULL DEFAULT '',
  created_at      bigint   NOT NULL,
  expires_at      bigint   NOT NULL,
  ended_at        bigint   NOT NULL DEFAULT 0,
  body            bytea    NOT NULL
);

CREATE UNIQUE INDEX message_key ON message(installation_id, idempotency_key) WHERE idempotency_key <> '';
CREATE INDEX message_waiting ON message(lease_id, seq) WHERE state < 2;

CREATE TABLE connect_budget (
  lease_id     text COLLATE "C" PRIMARY KEY,
  window_start bigint  NOT NULL,
  used         integer NOT NULL
);

CREATE TABLE task_run (
  task         text PRIMARY KEY,
  last_start   bigint  NOT NULL,
  last_success bigint  NOT NULL,
  failures     integer NOT NULL,
  last_error   text    NOT NULL,
  result       text    NOT NULL
);

-- Written and emptied by a probe.
CREATE TABLE probe (
  id     bigint PRIMARY KEY,
  filler bytea  NOT NULL
);
