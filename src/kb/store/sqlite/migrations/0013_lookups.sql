-- Which documents came with jobs that were accepted after a given one: asked whenever a note is published, usually none.
CREATE INDEX documents_accepted ON documents (accepted);
-- Which jobs name a document: asked when it is removed for good.
CREATE INDEX jobs_document ON jobs (document_id) WHERE document_id IS NOT NULL;
