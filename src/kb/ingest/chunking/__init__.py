"""Text in, passages out: where a text may be cut, and where it is cut. Start with `chunker.py`."""
