"""The command line: one module per command or small group of commands."""
