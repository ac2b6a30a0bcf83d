"""From what was added to passages that can be found."""
