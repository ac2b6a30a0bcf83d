"""The commands of `kb`, one module per command or small group; `table.py` lists them all."""
