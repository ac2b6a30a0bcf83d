-- What the index is for: ../../sqlite/migrations/0013_accepted.sql.
CREATE INDEX documents_accepted ON documents (accepted);
