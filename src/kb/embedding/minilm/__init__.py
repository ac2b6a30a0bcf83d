"""embedding/minilm."""
