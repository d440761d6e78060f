-- +goose Up

-- A program that knows none of these tables leaves them alone: min_reader stays.

-- Which master key all that is sealed was sealed with; '' = nothing is.
CREATE TABLE vault (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL,              -- grows with each change of what is sealed
  key_id  TEXT    NOT NULL,
  proof   BLOB    NOT NULL
) STRICT;

CREATE TABLE secret (
  name       TEXT    NOT NULL PRIMARY KEY,
  sealed     BLOB    NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE signing_key (
  id         TEXT    NOT NULL PRIMARY KEY,
  target     TEXT    NOT NULL,
  sealed     BLOB    NOT NULL,
  created_at INTEGER NOT NULL,
  retired_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Of a token only the SHA-256 is kept.
CREATE TABLE token (
  id            TEXT    NOT NULL PRIMARY KEY,
  name          TEXT    NOT NULL UNIQUE,
  hash          BLOB    NOT NULL,
  scopes        TEXT    NOT NULL,
  installations TEXT    NOT NULL,
  created_at    INTEGER NOT NULL,
  expires_at    INTEGER NOT NULL,
  used_at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was written over the API, and by whom.
CREATE TABLE audit (
  seq    INTEGER PRIMARY KEY AUTOINCREMENT,
  at     INTEGER NOT NULL,
  caller TEXT    NOT NULL,
  method TEXT    NOT NULL,
  path   TEXT    NOT NULL,
  status INTEGER NOT NULL
) STRICT;
