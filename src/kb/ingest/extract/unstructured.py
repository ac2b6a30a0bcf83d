"""The answer of a reader of some structure that a text does not have, whatever its name says."""


class Unstructured(Exception):
    """Says why the text is read as plain text instead."""
