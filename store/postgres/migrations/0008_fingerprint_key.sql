-- +goose Up

-- What keys the fingerprints of the installations' configs, in which secrets take part:
-- nodes must agree on what has changed. A program that does not know of it takes what
-- others wrote for changed: min_reader stays.
ALTER TABLE schema_info ADD COLUMN fingerprint_key text NOT NULL DEFAULT '';
UPDATE schema_info SET fingerprint_key = replace(gen_random_uuid()::text, '-', '') || replace(gen_random_uuid()::text, '-', '');
