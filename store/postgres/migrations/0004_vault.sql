-- +goose Up

-- A program that knows none of these tables leaves them alone: min_reader stays.

-- Which master key all that is sealed was sealed with; '' = nothing is.
CREATE TABLE vault (
  id      smallint PRIMARY KEY CHECK (id = 1),
  version bigint NOT NULL,               -- grows with each change of what is sealed
  key_id  text   NOT NULL,
  proof   bytea  NOT NULL
);

CREATE TABLE secret (
  name       text COLLATE "C" PRIMARY KEY,
  sealed     bytea  NOT NULL,
  updated_at bigint NOT NULL
);

CREATE TABLE signing_key (
  id         text COLLATE "C" PRIMARY KEY,
  target     text COLLATE "C" NOT NULL,
  sealed     bytea  NOT NULL,
  created_at bigint NOT NULL,
  retired_at bigint NOT NULL
);

-- Of a token only the SHA-256 is kept.
CREATE TABLE token (
  id            text COLLATE "C" PRIMARY KEY,
  name          text COLLATE "C" NOT NULL UNIQUE,
  hash          bytea  NOT NULL,
  scopes        text   NOT NULL,
  installations text   NOT NULL,
  created_at    bigint NOT NULL,
  expires_at    bigint NOT NULL,
  used_at       bigint NOT NULL
);

-- What was written over the API, and by whom.
CREATE TABLE audit (
  seq    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at     bigint  NOT NULL,
  caller text    NOT NULL,
  method text    NOT NULL,
  path   text    NOT NULL,
  status integer NOT NULL
);
