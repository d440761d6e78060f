-- +goose Up

-- Where events go. config has the keys of a [[target]] without its name, secrets by
-- reference only. off: '' = on, 'gone' = it answered 410, 'asked' = a person. A
-- program that does not know of it goes by its file alone: min_reader stays.
CREATE TABLE target (
  name       text COLLATE "C" PRIMARY KEY,
  config     text   NOT NULL,
  source     text   NOT NULL,
  revision   bigint NOT NULL,
  off        text   NOT NULL,
  reason     text   NOT NULL,
  off_since  bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL
);
