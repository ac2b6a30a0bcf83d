"""What lies in memory for searching: published chunks as arrays, postings of terms, sign bits of vectors.

It imports `core`, `embedding` and `store`. Everything here can be rebuilt from the database. Start with
`chunk_index.py`; `postings.py` caches where terms occur, `terms.py` turns text into terms, and `kernels.py` holds
the inner loops over many rows.
"""
