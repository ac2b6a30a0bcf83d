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
    "watch": About("commands.folders", "Keep folders in step with the disk, or list those that are."),
    "unwatch": About("commands.folders", "Stop watching folders; their documents stay."),
    "addnote": About("commands.notes", "Add a note and wait until it can be found."),
    "updatenote": About("commands.notes", "Replace the text of a note."),
    "history": About("commands.history", "List the versions of a note, or show what changed in one."),
    "revert": About("commands.history", "Give a note the text of an earlier version again."),
    "get": About("commands.documents", "Show a document and its passages."),
    "list": About("commands.documents", "List documents, the most recent first."),
    "tag": About("commands.documents", "Change a document's tags, or list all tags."),
    "rm": About("commands.trash", "Delete documents: into the trash, or for good."),
    "trash": About("commands.trash", "List what was deleted, bring it back, or empty the trash."),
    "jobs": About("commands.jobs", "List jobs, the newest first, or show, cancel or retry one."),
    "reindex": About("commands.reindex", "Make the whole index anew; the old one answers meanwhile."),
    "eval": About("commands.evaluate", "Measure how well your own questions are answered."),
    "doctor": About("commands.care", "Look for damage, and mend it on request."),
    "duplicates": About("commands.care", "List notes that say nearly the same."),
    "backup": About("commands.archives", "Save everything in one file, while the engine goes on."),
    "export": About(
        "commands.archives", "Save documents and originals for other programs to read: JSON lines in a tar."
    ),
    "restore": About(
        "commands.archives", "Bring a backup back into a data folder or a database; no engine may use it."
    ),
    "migrate": About("commands.migrate", "Move everything to another database; no engine may run meanwhile."),
    "import": About("importing.command", "Take in an archive of kb export, Markdown, or another program's export."),
    "status": About("commands.status", "Show what the engine holds and whether it is well."),
    "serve": About("commands.serve", "Run the engine: REST API and background worker."),
    "mcp": About("commands.mcp", "Run the MCP server, through which agents use kb."),
    "up": About("commands.up", "Run the engine and the MCP server together."),
    "down": About("commands.background", "End the kb that kb up --detach started."),
    "logs": About("commands.background", "Show what a kb without a terminal says."),
    "service": About("commands.service", "Make kb a service of yours that starts by itself, or remove it."),
    "config": About("commands.config", "Show every setting and where it comes from, or change the file with settings."),
    "model": About("commands.model", "Show which embedding model is used, or install it from a file or an address."),
    "connect": About("connect.command", "Let an agent use kb: write its MCP configuration and try it."),
    "disconnect": About("connect.command", "Take kb out of an agent's MCP configuration again."),
    "bridge": About("connect.command", "Speak MCP over stdio, for agents that start it."),
    "completion": About("commands.completion", "Let a shell complete commands and options: install it, or print it."),
}
