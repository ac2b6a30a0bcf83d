"""Files on their way to the engine: staged in chunks, received by a one-time address, or named by path."""
