-- Files that were found in other files: in an archive, a mail, a mailbox.
ALTER TABLE documents ADD COLUMN parent_id INTEGER; -- the document that holds this one; NULL: it was added itself
ALTER TABLE documents ADD COLUMN member TEXT;       -- its path in there; both together are its identity
CREATE INDEX documents_parent ON documents (parent_id) WHERE parent_id IS NOT NULL;
