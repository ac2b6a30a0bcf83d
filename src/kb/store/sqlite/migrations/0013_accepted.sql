-- Which documents came with jobs that were accepted after a given one: asked whenever a note is published, usually none.
CREATE INDEX documents_accepted ON documents (accepted);
