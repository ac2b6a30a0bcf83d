"""`kb import`: archives of `kb export` and folders of Markdown."""
