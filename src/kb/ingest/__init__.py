"""From an accepted request to a published document: extract, chunk, embed, publish.

It imports `core`, `embedding`, `store` and `index`. Start with `pipeline.py`. `extract/` has one module per format,
`sandbox/` runs them in processes without rights, and `chunking/` cuts text into passages.
"""
