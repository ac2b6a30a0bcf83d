-- Where the lines of a page stand that was read by OCR: its original says nothing of it, and reading it again takes long.
CREATE TABLE line_boxes (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    page        INTEGER NOT NULL,
    start_at    INTEGER NOT NULL, -- of the page's text in the document's
    width       REAL NOT NULL,    -- of the page in points, of a picture in pixels
    height      REAL NOT NULL,
    lines       TEXT NOT NULL,    -- JSON: of each line its first character on the page and the one after its last; left, top, right, bottom in tenths
    PRIMARY KEY (document_id, page)
);
