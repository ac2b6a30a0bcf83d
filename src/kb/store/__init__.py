"""The one place that speaks SQL.

`backend.py` says what a storage backend owns: connections and transactions, full text, vectors, claiming a job.
`sqlite/` is the backend there is. Everything else here (documents, chunks, notes, jobs, meta) is plain SQL that
any backend runs, written as functions over a transaction.
"""
