"""Proof that kb opens no connection of its own."""
