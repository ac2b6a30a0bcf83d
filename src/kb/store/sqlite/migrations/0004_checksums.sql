-- A checksum of every row that cannot be checked otherwise: SQLite has none of its own, so a bit that changes on the disk
-- changes a text or a ranking unseen. kb.store.sqlite.checksums says what `part` means, and keeps this in step.
CREATE TABLE checksums (
    part     INTEGER NOT NULL,
    id       INTEGER NOT NULL, -- rowid in the table that `part` stands for
    checksum INTEGER NOT NULL, -- 64 bits
    PRIMARY KEY (part, id)
) WITHOUT ROWID;
