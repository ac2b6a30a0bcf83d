-- What the indexes are for: ../../sqlite/migrations/0013_lookups.sql.
CREATE INDEX documents_edited ON documents (updated_at) WHERE version > 1;
CREATE INDEX jobs_document ON jobs (document_id) WHERE document_id IS NOT NULL;
