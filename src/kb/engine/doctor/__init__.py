"""Whether what belongs together is together, and mending what is not. Start with `doctor.py`."""
