"""The use cases of kb, each a short story over the parts, and what keeps them running.

It imports everything but the surfaces (`api`, `cli`, `mcp`). Start with `engine.py`. `assembly.py` is the only place
that puts parts together, `jobs/` is the queue with its workers, `doctor.py` looks for damage and mends it.
"""
