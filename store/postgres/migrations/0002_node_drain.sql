-- +goose Up

-- Nodes that are to hold nothing until they are resumed, over their restarts. A
-- program that does not know of it takes a drained node for one that works:
-- min_reader stays.
CREATE TABLE node_drain (
  instance_id text COLLATE "C" PRIMARY KEY,
  since       bigint NOT NULL
);
