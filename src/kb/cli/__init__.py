"""The command line `kb`: one module per command or small group of commands.

It imports `core` and `client`; a command imports the server that it starts inside its function. Start with
`main.py` and `commands/table.py`. `connect/` configures agents, `importing/` reads other programs' data.
"""
