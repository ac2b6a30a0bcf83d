"""Work that is accepted now and done in the background."""
