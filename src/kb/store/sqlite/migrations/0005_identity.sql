-- What a source path brought, and what an addition did.

-- The version of a note that its source path brought last; 0: not known. Another version is an edit made in kb.
ALTER TABLE documents ADD COLUMN brought INTEGER NOT NULL DEFAULT 0;

-- `accepted` names the job that brought the path's content, and publishing ends that job: a later version is an edit.
UPDATE documents SET brought = COALESCE(
    (SELECT max(n.version) FROM note_versions n JOIN jobs j ON j.seq = documents.accepted
      WHERE n.document_id = documents.id AND n.created_at <= j.finished_at),
    CASE version WHEN 1 THEN 1 ELSE 0 END)
 WHERE doc_type = 'note';

-- The metadata that additions gave; `metadata` holds it too, beside what a file says of itself. Which of the old keys
-- were given is not known: none of them is lost.
ALTER TABLE documents ADD COLUMN given TEXT NOT NULL DEFAULT '{}';
UPDATE documents SET given = metadata;

ALTER TABLE jobs ADD COLUMN outcome TEXT;  -- added, updated, unchanged or kept; NULL before a job has completed
