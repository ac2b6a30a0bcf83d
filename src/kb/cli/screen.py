"""Text for a terminal: escaped, measured in terminal cells, wrapped, coloured.

Nothing in a document can drive the terminal (control characters arrive as visible escapes), wide characters
do not break the layout, and colour and tables appear on a terminal only.
"""

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

# Controls, line separators, and the marks that reorder what follows them; line feed and tab are layout.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SPACE = re.compile(r"\s+")
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_ESCAPE = re.compile("\x1b\\[[0-9;]*m|\x1b]8;;[^\x1b]*\x1b\\\\")  # colours and links
_DEFAULT_COLUMNS = 80
_WIDEST_COLUMN = 40
_WIDEST_PASSAGE = 100  # longer lines are hard to read, however wide the window


def escaped(text: str) -> str:
    """The text with everything that could drive a terminal made visible; line feeds and tabs stay."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def one_line(text: object) -> str:
    """The text on one line, safe to print."""
    return escaped(_SPACE.sub(" ", str(text)).strip())


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def width(text: str) -> int:
    """How many cells of a terminal the text takes; colours and links take none."""
    cells = before = 0
    for char in _ESCAPE.sub("", text):
        if char == "\ufe0f":  # asks for the emoji form of a narrow sign: two cells
            now = 1 if before == 1 else 0
        else:
            now = _cells(char)
            before = now or before
        cells += now
    return cells


def _cells(char: str) -> int:
    if char < "\u0300":
        return 0 if char == "\xad" else 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf") or "\u1160" <= char <= "\u11ff":
        return 0
    if "\U0001f3fb" <= char <= "\U0001f3ff":  # a skin tone joins the emoji before it
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """The text, shortened with an ellipsis to fit."""
    if width(text) <= columns:
        return text
    kept, used = [], 0
    for char in text:
        used += _cells(char)
        if used >= columns:
            break
        kept.append(char)
    return "".join(kept) + "…"


def wrapped(text: str, columns: int) -> list[str]:
    """The text as lines that fit; its own lines and their indents are kept, runs of blank lines become one."""
    lines: list[str] = []
    for paragraph in text.expandtabs(4).split("\n"):
        indent = min(len(paragraph) - len(paragraph.lstrip(" ")), columns // 2)
        filled = [" " * indent + line for line in _filled(paragraph, max(columns - indent, 4))]
        if filled or (lines and lines[-1]):
            lines.extend(filled or [""])
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _filled(paragraph: str, columns: int) -> list[str]:
    lines: list[str] = []
    line, used = "", 0
    for word in paragraph.split():
        size = width(word)
        if line and used + 1 + size <= columns:
            line, used = f"{line} {word}", used + 1 + size
            continue
        if line:
            lines.append(line)
        *full, line = _pieces(word, columns)
        lines.extend(full)
        used = width(line)
    return [*lines, line] if line else lines


def _pieces(word: str, columns: int) -> list[str]:
    """A word in pieces that fit: scripts without spaces, long addresses."""
    pieces, piece, used = [], "", 0
    for char in word:
        cells = _cells(char)
        if used + cells > columns:
            pieces.append(piece)
            piece, used = "", 0
        piece, used = piece + char, used + cells
    return [*pieces, piece]


class Screen:
    """One output stream: whether a person watches, which colours it may show, how wide it is."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str] = os.environ) -> None:
        self.stream = stream
        self.terminal = stream.isatty()
        plain = environ.get("NO_COLOR") or environ.get("TERM") == "dumb"
        self.colour = self.terminal and not plain
        self.columns = _columns(stream, environ) if self.terminal else sys.maxsize

    def style(self, text: str, *names: str) -> str:
        if not self.colour or not text:
            return text
        return f"\x1b[{';'.join(_STYLES[name] for name in names)}m{text}\x1b[0m"

    def link(self, text: str, url: str) -> str:
        """The text, which leads to the address where a terminal can follow links."""
        return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if self.colour else text

    def mark(self, text: str, pattern: "re.Pattern[str] | None") -> str:
        """The text with what the pattern finds made to stand out."""
        if not self.colour or pattern is None:
            return text
        return pattern.sub(lambda found: self.style(found[0], "bold", "yellow"), text)

    def say(self, text: str = "") -> None:
        print(text, file=self.stream)

    def passage(self, text: str, indent: str, pattern: "re.Pattern[str] | None" = None) -> None:
        """A passage of a document: wrapped on a terminal, as it is elsewhere."""
        text = escaped(text)
        columns = min(self.columns, _WIDEST_PASSAGE) - len(indent)
        for line in wrapped(text, columns) if self.terminal else text.split("\n"):
            self.say((indent + self.mark(line, pattern)).rstrip())

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Aligned columns on a terminal, shortened to fit; lines of tab-separated values elsewhere."""
        cells = [[one_line("" if value is None else value) for value in row] for row in rows]
        if not self.terminal:
            for row in cells:
                self.say("\t".join(row))
            return
        cells = [[*(cut(cell, _WIDEST_COLUMN) for cell in row[:-1]), row[-1]] for row in cells]
        widths = [max(map(width, column)) for column in zip(heads, *cells, strict=True)]
        for number, row in enumerate([list(heads), *cells]):
            padded = [cell + " " * (size - width(cell)) for cell, size in zip(row[:-1], widths[:-1], strict=True)]
            room = max(self.columns - sum(widths[:-1]) - 2 * len(padded), 10)
            line = "  ".join([*padded, cut(row[-1], room)]).rstrip()
            self.say(line if number else self.style(line, "dim"))

    def progress(self, text: str, fraction: float) -> None:
        """Redraw the one line that says how far something is; only a terminal has it."""
        if not self.terminal:
            return
        done = round(20 * min(max(fraction, 0.0), 1.0))
        line = f"[{'#' * done}{'-' * (20 - done)}] {fraction:4.0%}  {one_line(text)}"
        self.stream.write("\r\x1b[K" + cut(line, self.columns - 1))
        self.stream.flush()

    def clear(self) -> None:
        """Take the progress line away."""
        if self.terminal:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


def _columns(stream: TextIO, environ: Mapping[str, str]) -> int:
    if environ.get("COLUMNS", "").isdecimal():
        return max(int(environ["COLUMNS"]), 20)
    try:
        return max(os.get_terminal_size(stream.fileno()).columns or _DEFAULT_COLUMNS, 20)
    except OSError:
        return _DEFAULT_COLUMNS
