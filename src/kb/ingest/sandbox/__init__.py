"""ingest/sandbox."""
