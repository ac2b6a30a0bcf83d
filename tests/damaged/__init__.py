"""Databases that are damaged or made by another, opened and used: `python -m damaged`."""
