"""Every command: the module that declares it, and what it does in one line.

A table, so that `kb --help` and a wrong command import none of these modules: it must feel instant.
"""

from typing import NamedTuple


class About(NamedTuple):
    module: str  # of kb.cli
    summary: str


# In the order of the help.
COMMANDS = {
    "search": About("commands.search", "Find the passages that answer a question."),
    "open": About("commands.open", "Open the web page in a browser, at a document or a question."),
    "add": About("commands.add", "Add files, folders and globs, and wait until they can be found."),
    "addnote": About("commands.notes", "Add a note and wait until it can be found."),
    "updatenote": About("commands.notes", "Replace the text of a note."),
    "get": About("commands.documents", "Show a document and its passages."),
    "list": About("commands.documents", "List documents, the most recent first."),
    "tag": About("commands.documents", "Change a document's tags, or list all tags."),
    "rm": About("commands.documents", "Delete documents for good, history included."),
    "jobs": About("commands.jobs", "List jobs, the newest first, or show, cancel or retry one."),
    "reindex": About("commands.reindex", "Make the whole index anew; the old one answers meanwhile."),
    "eval": About("commands.evaluate", "Measure how well your own questions are answered."),
    "doctor": About("commands.care", "Look for damage, and mend it on request."),
    "duplicates": About("commands.care", "List notes that say nearly the same."),
    "backup": About("commands.archives", "Save everything in one file, while the engine goes on."),
    "export": About(
        "commands.archives", "Save documents and originals for other programs to read: JSON lines in a tar."
    ),
    "restore": About("commands.archives", "Make a data folder from a backup; no engine may use it."),
    "import": About("importing.command", "Take in an archive of kb export, or a folder of Markdown as notes."),
    "status": About("commands.status", "Show what the engine holds and whether it is well."),
    "serve": About("commands.serve", "Run the engine: REST API and background worker."),
    "mcp": About("commands.mcp", "Run the MCP server, through which agents use kb."),
    "up": About("commands.up", "Run the engine and the MCP server together."),
    "connect": About("connect.command", "Let an agent use kb: write its MCP configuration and try it."),
    "bridge": About("connect.command", "Speak MCP over stdio, for agents that start it."),
    "completion": About("commands.completion", "Print what lets a shell complete commands and options."),
}
