"""store/backup."""
