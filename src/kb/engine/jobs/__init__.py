"""Work that is accepted now and done in the background: the queue and its workers."""
