"""Text in, unit vectors out: tokenizer, model files, runtimes, and the order of the work.

It imports `core` only. Start with `embedder.py`; `batcher.py` runs bulk work on all cores, and `priority.py` lets it
wait for searches. `minilm/` is a fast path for one model: without that folder, a general runtime does the same.
"""
