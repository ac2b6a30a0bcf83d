-- Vectors for questions in other languages. What the column means: ../../sqlite/migrations/0012_static_vectors.sql.
ALTER TABLE chunks ADD COLUMN static_vector text COLLATE "C";
CREATE INDEX chunks_without_static_vector ON chunks (id) WHERE static_vector IS NULL;
