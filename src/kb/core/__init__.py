"""Values, errors, settings and small helpers that every other package uses.

It imports nothing of kb. Start with `values.py`: what goes over the wire is the same value as in memory.
`errors.py` opens with the tree of errors and the code, status and exit code of each.
"""
