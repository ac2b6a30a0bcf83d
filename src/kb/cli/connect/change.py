"""One change of an agent's configuration file: shown with the keys hidden, agreed to, written with a backup."""

import os
import re
import sys
from collections.abc import Callable

from kb.core.errors import InvalidRequest

HIDDEN = "********"


class ConfigChange:
    """The present and the new text of a configuration file."""

    def __init__(self, path: str, edit: Callable[[str], str], key: str) -> None:
        # Dotfiles are often links into a folder under version control: the file behind the link is the one to change.
        self.path = os.path.realpath(path)
        self.before = text_of(self.path)
        self.after = edit(self.before or "")
        self.key = key
        self.needed = self.before != self.after
        self.backup: str | None = None
        self.written = False

    def show(self) -> None:
        import difflib

        from kb.cli.screen import Screen, escaped

        screen = Screen(sys.stdout)
        if not self.needed:
            screen.say(f"{self.path} says so already.")
            return
        old, new = (self._hidden(text).splitlines() for text in (self.before or "", self.after))
        if old == new:
            screen.say(f"In {self.path} only the key changes.")
        names = ("/dev/null" if self.before is None else self.path, self.path)
        for line in difflib.unified_diff(old, new, *names, lineterm=""):
            colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
            screen.say(screen.style(escaped(line), colour))

    def _hidden(self, text: str) -> str:
        """The text without keys: neither ours nor those of other servers."""
        text = re.sub(r"(Bearer |KB_MCP_API_KEY\": \")[^\"'\s]+", rf"\g<1>{HIDDEN}", text)
        return text.replace(self.key, HIDDEN) if self.key else text

    def agreed(self) -> bool:
        """Ask the person at the terminal."""
        if not sys.stdin.isatty():
            raise InvalidRequest(
                "Writing asks first, and nobody is there to answer: say --yes, or --print to look only."
            )
        print(f"Write this to {self.path}? [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def write(self) -> None:
        """Write a backup, then the new file in one rename; only the user can read a file with a key."""
        if not self.needed:
            return
        from kb.cli.connect.files import backed_up, replaced

        if self.before is not None:
            self.backup = backed_up(self.path)
        replaced(self.path, self.after, private=self.before is None or bool(self.key))
        self.written = True


def text_of(path: str) -> str | None:
    try:
        # Line ends stay as they are.
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as wrong:
        raise InvalidRequest(f"{path} cannot be read: {getattr(wrong, 'strerror', None) or wrong}.") from wrong
