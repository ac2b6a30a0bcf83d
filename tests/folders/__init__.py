"""Change thousands of files while the engine is killed again and again; compare with an index made from scratch."""
