-- +goose Up

-- The mark of a copy that is not finished, and of who writes it. A program that does
-- not know it would run on a part of the rows; none was released: min_reader stays.
CREATE TABLE store_copy (
  id       smallint PRIMARY KEY CHECK (id = 1),
  source   text   NOT NULL,              -- the id of the store that is copied
  writer   text   NOT NULL,
  begun_at bigint NOT NULL
);
