-- The trash. A document in it keeps its rows, chunks and original, and only the trash shows it.

ALTER TABLE documents ADD COLUMN deleted_at TEXT; -- since when it is in the trash; NULL: it is not
CREATE INDEX documents_deleted_at ON documents (deleted_at) WHERE deleted_at IS NOT NULL;

DROP VIEW published;
CREATE VIEW published AS SELECT * FROM documents WHERE revision > 0 AND deleted_at IS NULL;
-- Those in the trash too: what is mended, indexed anew or removed for good.
CREATE VIEW stored AS SELECT * FROM documents WHERE revision > 0;
