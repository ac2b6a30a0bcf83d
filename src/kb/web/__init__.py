"""The page, as static files."""
