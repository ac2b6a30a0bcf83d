-- What tells copies of a passage, and passages that a reader of the original does not see. migrate.py fills in the keys
-- of what is there.

ALTER TABLE chunks ADD COLUMN text_key INTEGER NOT NULL DEFAULT 0;  -- the same for texts that differ in white space only
ALTER TABLE chunks ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;    -- 1: some of the text is not visible in the original
CREATE INDEX chunks_text_key ON chunks (text_key);
