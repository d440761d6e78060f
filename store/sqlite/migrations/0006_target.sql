-- +goose Up

-- Where events go. config has the keys of a [[target]] without its name, secrets by
-- reference only. off: '' = on, 'gone' = it answered 410, 'asked' = a person. A
-- program that does not know of it goes by its file alone: min_reader stays.
CREATE TABLE target (
  name       TEXT    NOT NULL PRIMARY KEY,
  config     TEXT    NOT NULL,
  source     TEXT    NOT NULL,
  revision   INTEGER NOT NULL,
  off        TEXT    NOT NULL,
  reason     TEXT    NOT NULL,
  off_since  INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
