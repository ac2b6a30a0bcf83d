-- Folders that the engine keeps in step with the disk.
CREATE TABLE folders (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    path       TEXT NOT NULL UNIQUE,   -- absolute, without links
    tags       TEXT NOT NULL,          -- JSON, as the next two: what was asked for
    include    TEXT NOT NULL,
    exclude    TEXT NOT NULL,
    ocr        INTEGER NOT NULL,       -- 1: read pages by OCR even where they have text
    created_at TEXT NOT NULL
);

-- What is known of each file: as it was when it was last read, and what became of it. A scan makes all of it again.
CREATE TABLE folder_files (
    folder_id   INTEGER NOT NULL,
    path        TEXT NOT NULL,         -- below the folder; one that ends with a slash is a folder that is left out
    size        INTEGER NOT NULL,
    mtime_ns    INTEGER NOT NULL,
    ctime_ns    INTEGER NOT NULL,
    device      INTEGER NOT NULL,
    inode       INTEGER NOT NULL,
    hash        TEXT,                  -- sha256 of the bytes; NULL until they are read
    document_id INTEGER,
    job_id      TEXT,                  -- the job that reads it, or read it in vain
    state       TEXT NOT NULL,         -- indexed, waiting, ignored or failed
    reason      TEXT,
    PRIMARY KEY (folder_id, path)
);
CREATE INDEX folder_files_size ON folder_files (folder_id, size);
CREATE INDEX folder_files_state ON folder_files (folder_id, state, path);
CREATE INDEX folder_files_job ON folder_files (folder_id, job_id) WHERE job_id IS NOT NULL;
