"""The contracts, one module each: signatures and docstrings are what agents see."""
