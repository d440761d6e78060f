-- +goose Up

-- Since when the holder tries to connect, or is connected; 0 = it only waits. Whoever
-- takes the lease over from one that died knows by it whether the connection may have
-- been the reason. A program that does not know of it counts as it did before:
-- min_reader stays.
ALTER TABLE lease ADD COLUMN dialled_at INTEGER NOT NULL DEFAULT 0;
