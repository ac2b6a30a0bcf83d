-- Which notes were edited since a given moment: asked whenever a note is published.
CREATE INDEX documents_edited ON documents (updated_at) WHERE version > 1;
-- Which jobs name a document: asked when it is removed for good.
CREATE INDEX jobs_document ON jobs (document_id) WHERE document_id IS NOT NULL;
