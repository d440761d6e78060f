-- +goose Up

-- Who answers a pressed button: defer is us, sync is the program.
ALTER TABLE installation ADD COLUMN interactions TEXT NOT NULL DEFAULT 'defer';
