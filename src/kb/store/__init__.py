"""The only package with SQL.

`backend.py` says what a storage backend owns: connections and transactions, full text, vectors, claiming a job.
`sqlite/` is the only backend so far. Everything else here (documents, chunks, notes, jobs, meta) is plain SQL that
any backend runs, written as functions over a transaction.
"""
