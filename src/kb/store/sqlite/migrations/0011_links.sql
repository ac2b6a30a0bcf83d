-- What Markdown files and notes link to, and the names by which links find documents. Both are made from texts, paths and
-- titles; migrate.py fills them in for what is there.
CREATE TABLE links (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    position    INTEGER NOT NULL, -- in the order of the text
    target      TEXT NOT NULL,    -- as written
    name        TEXT NOT NULL,    -- the last part of its path, as it is compared
    PRIMARY KEY (document_id, position)
);
CREATE INDEX links_name ON links (name);

CREATE TABLE names (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    kind        TEXT NOT NULL,    -- path, title or alias
    name        TEXT NOT NULL,
    PRIMARY KEY (document_id, kind, name)
);
CREATE INDEX names_name ON names (name);
