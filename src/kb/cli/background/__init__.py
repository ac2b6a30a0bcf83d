"""kb without a terminal: `kb up --detach`, `kb down`, `kb logs`, `kb service`. Start with `running.py`."""
