"""ingest/chunking."""
