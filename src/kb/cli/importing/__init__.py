"""cli/importing."""
