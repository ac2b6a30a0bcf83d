"""Processes that read foreign files without the rights to do harm, and OCR inside them. Start with `sandbox.py`."""
