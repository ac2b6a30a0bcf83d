-- The vector of a passage by which questions in other languages find it: 128 signed bytes, as base64. NULL: not made yet.
ALTER TABLE chunks ADD COLUMN static_vector TEXT;
CREATE INDEX chunks_without_static_vector ON chunks (id) WHERE static_vector IS NULL;
