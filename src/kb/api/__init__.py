"""The REST API: one file of routes per noun, and one error shape.

It imports `core`, `engine` and `http`. Start with `app.py`, then any file of routes. `schemas.py` has the shapes of
requests, `errors.py` turns every error into the one error body.
"""
