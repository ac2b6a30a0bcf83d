"""The fast path for queries with all-MiniLM-L6-v2: an encoder in C for x86-64, and the model's ONNX graph."""
