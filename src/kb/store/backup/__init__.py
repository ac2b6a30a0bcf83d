"""A consistent archive of the database and its originals, and the way back: backup, export, restore."""
