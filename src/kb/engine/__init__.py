"""The use cases of kb, and what keeps them running.

It imports everything but the surfaces (`api`, `cli`, `mcp`). Start with `engine.py`. `assembly.py` is the only place
that puts parts together, `recovery.py` opens the database, `housekeeping.py` tidies up. `jobs/` is the queue with its
workers, `doctor/` looks for damage and mends it.
"""
