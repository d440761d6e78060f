-- +goose Up

-- Who answers a pressed button: defer is us, sync is the program.
ALTER TABLE installation ADD COLUMN interactions text NOT NULL DEFAULT 'defer';
