"""cli/connect."""
