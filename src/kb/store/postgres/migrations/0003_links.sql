-- Links between documents. What a column means: ../../sqlite/migrations/0011_links.sql.
CREATE TABLE links (
    document_id bigint NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    position    bigint NOT NULL,
    target      text COLLATE "C" NOT NULL,
    name        text COLLATE "C" NOT NULL,
    PRIMARY KEY (document_id, position)
);
CREATE INDEX links_name ON links (name);

CREATE TABLE names (
    document_id bigint NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    kind        text COLLATE "C" NOT NULL,
    name        text COLLATE "C" NOT NULL,
    PRIMARY KEY (document_id, kind, name)
);
CREATE INDEX names_name ON names (name);
