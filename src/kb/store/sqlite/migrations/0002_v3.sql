-- v3. A v2 file loses nothing: rows keep their ids, and what v2 did not record is derived here or by the step in
-- migrate.py that runs in the same transaction.

-- Without a partner a row means nothing; migrate.py counts them first.
DELETE FROM chunks WHERE document_id NOT IN (SELECT id FROM documents);
DELETE FROM chunks_vec WHERE chunk_id NOT IN (SELECT id FROM chunks);
DELETE FROM tags WHERE document_id NOT IN (SELECT id FROM documents);

ALTER TABLE documents ADD COLUMN updated_at TEXT;                        -- NULL until the first mutation
ALTER TABLE documents ADD COLUMN uid TEXT;
ALTER TABLE documents ADD COLUMN filename TEXT;                          -- NULL for a note
ALTER TABLE documents ADD COLUMN titled INTEGER NOT NULL DEFAULT 1;      -- 0: the title comes from the content
ALTER TABLE documents ADD COLUMN media_type TEXT NOT NULL DEFAULT 'application/octet-stream';
ALTER TABLE documents ADD COLUMN size_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
ALTER TABLE documents ADD COLUMN processing_method TEXT NOT NULL DEFAULT 'text_extraction';
ALTER TABLE documents ADD COLUMN ledger TEXT NOT NULL DEFAULT '[]';
ALTER TABLE documents ADD COLUMN version INTEGER NOT NULL DEFAULT 1;     -- counts contents
ALTER TABLE documents ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;    -- chunks of this revision are published; 0: none
ALTER TABLE documents ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;       -- the highest revision that anybody has begun
ALTER TABLE documents ADD COLUMN accepted INTEGER NOT NULL DEFAULT 0;    -- seq of the job that this content came with
ALTER TABLE documents ADD COLUMN chunk_count INTEGER NOT NULL DEFAULT 0; -- of the published revision

UPDATE documents SET
    uid = lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
                || substr('89AB', 1 + (abs(random()) % 4), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))),
    created_at = COALESCE(strftime('%Y-%m-%dT%H:%M:%fZ', created_at), strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    revision = 1,
    taken = 1;

CREATE UNIQUE INDEX documents_uid ON documents (uid);
CREATE INDEX documents_source_path ON documents (source_path) WHERE source_path IS NOT NULL;
CREATE INDEX documents_content_hash ON documents (content_hash);
CREATE INDEX documents_recent ON documents (COALESCE(updated_at, created_at));

-- A document that is being written for the first time is not there yet.
CREATE VIEW published AS SELECT * FROM documents WHERE revision > 0;

DROP TRIGGER chunks_ai;
DROP TRIGGER chunks_ad;
DROP TRIGGER chunks_au;
DROP TABLE chunks_fts;

CREATE TABLE chunks_v3 (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    revision    INTEGER NOT NULL,
    chunk_index INTEGER NOT NULL,
    text        TEXT NOT NULL,
    heading     TEXT,                         -- heading path in force
    page        INTEGER,
    slide       INTEGER,
    sheet       TEXT,
    start_at    INTEGER NOT NULL,             -- characters into the document's extracted text
    end_at      INTEGER NOT NULL,
    terms       INTEGER NOT NULL DEFAULT 0,   -- how many the full text holds: the length that BM25 needs
    UNIQUE (document_id, revision, chunk_index)
);
INSERT INTO chunks_v3 (id, document_id, revision, chunk_index, text, page, start_at, end_at)
    SELECT id, document_id, 1, chunk_index, text, page, 0, 0 FROM chunks ORDER BY id;
UPDATE sqlite_sequence SET seq = MAX(seq, (SELECT seq FROM sqlite_sequence WHERE name = 'chunks'))
    WHERE name = 'chunks_v3' AND EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'chunks');
DROP TABLE chunks;
ALTER TABLE chunks_v3 RENAME TO chunks;

-- Pre-segmented terms (kb.terms): any process can check and read this index, no custom tokenizer is needed.
CREATE VIRTUAL TABLE chunks_fts USING fts5(title, heading, body, tokenize = "ascii tokenchars '_-.+#@,&'");
INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('secure-delete', 1);

ALTER TABLE tags ADD COLUMN position INTEGER NOT NULL DEFAULT 0;  -- tags come back in the order they were given
CREATE INDEX tags_tag ON tags (tag, document_id);

-- The extracted text of a file; a note's text is its version in note_versions.
CREATE TABLE texts (
    document_id INTEGER PRIMARY KEY REFERENCES documents(id) ON DELETE CASCADE,
    text        TEXT NOT NULL
);
CREATE TABLE note_versions (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    version     INTEGER NOT NULL,
    text        TEXT NOT NULL,
    created_at  TEXT NOT NULL,
    PRIMARY KEY (document_id, version)
);
CREATE VIEW document_texts AS
    SELECT document_id, text FROM texts
    UNION ALL
    SELECT n.document_id, n.text FROM note_versions n JOIN documents d ON d.id = n.document_id AND d.version = n.version;

ALTER TABLE jobs RENAME TO jobs_v2;
CREATE TABLE jobs (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of arrival
    id              TEXT NOT NULL UNIQUE,
    kind            TEXT NOT NULL,
    status          TEXT NOT NULL,
    lane            TEXT NOT NULL DEFAULT 'small',      -- small jobs do not wait behind large ones
    payload         TEXT,                               -- what to do, as JSON; NULL once it is done
    filename        TEXT,
    document_id     INTEGER,
    uid             TEXT,
    completed_steps INTEGER NOT NULL DEFAULT 0,
    total_steps     INTEGER NOT NULL DEFAULT 0,
    current_step    TEXT,
    chunks_created  INTEGER NOT NULL DEFAULT 0,
    error_code      TEXT,
    error_message   TEXT,
    attempts        INTEGER NOT NULL DEFAULT 0,
    cancelling      INTEGER NOT NULL DEFAULT 0,         -- 1: it runs, but somebody asked it to stop
    not_before      TEXT,                               -- a retry waits until then
    created_at      TEXT NOT NULL,
    started_at      TEXT,
    finished_at     TEXT
);
INSERT INTO jobs (id, kind, status, filename, document_id, error_code, error_message, created_at, finished_at)
    SELECT id, 'file',
           CASE WHEN status IN ('completed', 'failed') THEN status ELSE 'failed' END,
           filename, document_id,
           CASE WHEN status = 'completed' THEN NULL ELSE 'internal' END,
           CASE WHEN status = 'completed' THEN NULL
                WHEN status = 'failed' THEN COALESCE(error, 'failed in v2')
                ELSE 'unfinished when v2 was upgraded; add it again' END,
           COALESCE(strftime('%Y-%m-%dT%H:%M:%fZ', created_at), strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
           COALESCE(strftime('%Y-%m-%dT%H:%M:%fZ', finished_at), strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
      FROM jobs_v2 ORDER BY created_at, rowid;
DROP TABLE jobs_v2;
CREATE INDEX jobs_waiting ON jobs (status, lane, seq);

-- What the index was made with: model, chunker, context, terms.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
