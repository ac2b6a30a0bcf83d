"""Open the original of a result, or the web page, with the platform's program for it."""

import os
import shlex
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from kb.core.errors import NotFound, Unavailable
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.cli.transport import SocketClient

OPENER = "open" if sys.platform == "darwin" else "xdg-open"


# How editors are told a line.
AT_LINE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys("vi vim nvim nano emacs emacsclient micro kak joe".split(), ("+{line}", "{path}")),
    **dict.fromkeys("code codium cursor".split(), ("--goto", "{path}:{line}")),
    **dict.fromkeys("subl hx zed".split(), ("{path}:{line}",)),
}


def open_original(client: "SocketClient", hit: Json | None, line: int | None) -> None:
    """Open the file that it came from if it is here, otherwise a copy of the original; a program at the line."""
    if hit is None:
        raise NotFound("Nothing was found, so there is nothing to open.")
    path = hit["source_path"]
    if not path or not os.path.isfile(path):
        path = _copy(client, hit)
    at_line = _editing(path, line) if line and hit["doc_type"] == "code" else None
    _run(at_line or [OPENER, path], f"the file is {path}")


def _editing(path: str, line: int) -> list[str] | None:
    """The command that edits a file at a line; None if no editor is chosen, or it is not known how to tell it."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    told = AT_LINE.get(os.path.basename(editor[0])) if editor else None
    return [*editor, *(word.format(path=path, line=line) for word in told)] if told else None


def open_address(url: str, shown: str) -> None:
    """Open a page of the engine; an error shows the address without its key."""
    _run([OPENER, url], f"open {shown} in a browser")


def _run(command: list[str], otherwise: str) -> None:
    try:
        done = subprocess.run(command, check=False)
    except OSError as wrong:
        raise Unavailable(f"{command[0]} cannot be started ({wrong.strerror}); {otherwise}.") from wrong
    if done.returncode:
        raise Unavailable(f"{command[0]} failed with exit code {done.returncode}; {otherwise}.")


def _copy(client: "SocketClient", hit: Json) -> str:
    # The program that opens it may still read it after we ended, so the copy stays until the system tidies up.
    folder = tempfile.mkdtemp(prefix="kb-")
    name = os.path.basename((hit["filename"] or f"note-{hit['document_id']}.md").replace("\\", "/"))
    path = os.path.join(folder, name or "original")
    client.original(hit["document_id"], path)
    return path
