-- +goose Up

-- Nodes that are to hold nothing until they are resumed, over their restarts. A
-- program that does not know of it takes a drained node for one that works:
-- min_reader stays.
CREATE TABLE node_drain (
  instance_id TEXT    NOT NULL PRIMARY KEY,
  since       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
