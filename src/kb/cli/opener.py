"""Open the original of a result, or the web page, with the platform's program for it."""

import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from kb.core.errors import NotFound, Unavailable
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.cli.transport import SocketClient

OPENER = "open" if sys.platform == "darwin" else "xdg-open"


def open_original(client: "SocketClient", answer: Json) -> None:
    """Open the file that it came from if it is here, otherwise a copy of the original."""
    if not answer["results"]:
        raise NotFound("Nothing was found, so there is nothing to open.")
    best = answer["results"][0]
    path = best["source_path"]
    if not path or not os.path.isfile(path):
        path = _copy(client, best)
    _open(path, f"the file is {path}")


def open_address(url: str, shown: str) -> None:
    """Open a page of the engine; an error shows the address without its key."""
    _open(url, f"open {shown} in a browser")


def _open(target: str, otherwise: str) -> None:
    try:
        done = subprocess.run([OPENER, target], check=False)
    except OSError as wrong:
        raise Unavailable(f"{OPENER} cannot be started ({wrong.strerror}); {otherwise}.") from wrong
    if done.returncode:
        raise Unavailable(f"{OPENER} failed with exit code {done.returncode}; {otherwise}.")


def _copy(client: "SocketClient", hit: Json) -> str:
    # The program that opens it may still read it after we ended, so the copy stays until the system tidies up.
    folder = tempfile.mkdtemp(prefix="kb-")
    name = os.path.basename((hit["filename"] or f"note-{hit['document_id']}.md").replace("\\", "/"))
    path = os.path.join(folder, name or "original")
    client.original(hit["document_id"], path)
    return path
