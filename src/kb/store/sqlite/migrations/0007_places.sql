-- Where a passage stands in files without pages, slides and sheets.
ALTER TABLE chunks ADD COLUMN place TEXT; -- JSON: chapter, cell, rows, member, message, symbol, as far as they apply
