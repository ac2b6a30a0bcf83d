"""Jupyter notebooks: every cell, with the headings that it stands under; of outputs, only what is text."""

import json
import re
from collections.abc import Iterator
from typing import Any

from kb.core.errors import JobFailure
from kb.core.types import Json
from kb.core.values import Anchor
from kb.ingest.extract.encoding import decoded
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.tidy import detail
from kb.ingest.extract.tools import Ocr, Source

MAX_CELLS = 20_000
HEADING = " > "  # between the parts of a heading path
TITLE = re.compile(r"(?P<marks>#{1,6})[ \t]+(?P<title>.*?)[ \t]*#*[ \t]*")
FENCE = re.compile(r"[ \t]{0,3}(?:```|~~~)")
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # of a terminal
OBJECT = re.compile(r"<[^<>\n]+>")  # how Python shows an object that has no text of its own
EMBEDDED = re.compile(r"\(data:[^()\s]*\)|(?<=[\"'])data:[^\"'\s]*")  # a picture in a Markdown cell
TEXTS = ("text/markdown", "text/latex", "text/plain")  # of an output in several forms, the first that is there

Titles = list[tuple[int, str]]  # the headings that are in force: their levels and what they say


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    notebook = opened(source)
    cells = cells_of(notebook)
    titles: Titles = []
    title = detail(field(notebook, "metadata").get("title")) or None
    for number, cell in enumerate(cells, 1):
        name, found = f"cell {number}", False
        outcome = outcome_of(outputs_of(cell))
        for text in pieces(cell, titles):
            title = title or next((said for level, said in titles if level == 1), None)
            anchor = Anchor(cell=number, heading=HEADING.join(said for _, said in titles) or None)
            about = authors(notebook) if number == 1 else {}
            yield Part(name, text, anchor, outcome, title, about, number, len(cells))
            found = True
        if not found:
            yield Part(
                name, "", Anchor(cell=number), outcome if outcome.reason else EMPTY, title, {}, number, len(cells)
            )


def opened(source: Source) -> Json:
    try:
        notebook = json.loads(decoded(source.read_bytes()).text)
    except RecursionError:
        raise JobFailure("too_complex", "The notebook's JSON is nested too deeply.") from None
    except ValueError as error:
        raise JobFailure("corrupt", f"The notebook is cut off or damaged: {error}") from None
    if not isinstance(notebook, dict):
        raise JobFailure("corrupt", "The notebook has no cells.")
    return notebook


def cells_of(notebook: Json) -> list[Json]:
    """The cells in order; before version 4 they were kept in worksheets."""
    sheets = items(notebook, "worksheets")
    cells = items(notebook, "cells") or [cell for sheet in sheets for cell in items(sheet, "cells")]
    if len(cells) > MAX_CELLS:
        raise JobFailure("too_complex", f"The notebook has {len(cells)} cells.")
    return cells


def pieces(cell: Json, titles: Titles) -> Iterator[str]:
    """The texts of a cell, one for each heading in it; `titles` are those in force where the text stands."""
    text = joined(cell.get("source", cell.get("input")))
    kind = cell.get("cell_type")
    if kind == "heading":  # before version 4
        text, kind = f"{'#' * level_of(cell)} {' '.join(text.split())}", "markdown"
    if kind == "markdown":
        yield from sections(EMBEDDED.sub("", text), titles)
        return
    shown = [text.strip("\n"), *(output_text(output).strip("\n") for output in outputs_of(cell))]
    if whole := "\n\n".join(piece for piece in shown if piece.strip()):
        yield whole


def sections(text: str, titles: Titles) -> Iterator[str]:
    """A Markdown text cut before its headings; one without any text of its own stays with the next."""
    lines: list[str] = []
    is_fenced = has_body = False
    for line in text.splitlines():
        found = None if is_fenced else TITLE.fullmatch(line)
        is_fenced ^= FENCE.match(line) is not None
        if found:
            if has_body:
                yield "\n".join(lines).strip("\n")
                lines, has_body = [], False
            level = len(found["marks"])
            titles[:] = [(above, said) for above, said in titles if above < level]
            titles += [(level, found["title"])] if found["title"] else []
        has_body = has_body or (not found and not line.isspace() and line != "")
        lines.append(line)
    if rest := "\n".join(lines).strip():
        yield rest


def outcome_of(outputs: list[Json]) -> Outcome:
    """Count what of the outputs is not read: pictures, and what has only other forms, for example HTML."""
    drawn = [output for output in outputs if any(kind.startswith("image/") for kind in forms(output))]
    unread = [
        output for output in outputs if forms(output) and output not in drawn and forms(output).keys().isdisjoint(TEXTS)
    ]
    told = [("pictures", len(drawn)), ("forms without text", len(unread))]
    reasons = [f"{what} in its output are not read: {count}" for what, count in told if count]
    return Outcome("ok", "; ".join(reasons)) if reasons else Outcome()


def outputs_of(cell: Json) -> list[Json]:
    return items(cell, "outputs") if cell.get("cell_type") == "code" else []


def forms(output: Json) -> Json:
    """What an output holds, by media type; before version 4 its fields had short names."""
    data = field(output, "data")
    return data or {f"image/{kind}": output[kind] for kind in ("png", "jpeg", "svg") if kind in output}


def output_text(output: Json) -> str:
    """What a cell printed, the text of its value, or the error that it ended with."""
    kind = output.get("output_type")
    if kind in ("error", "pyerr"):
        return ": ".join(filter(None, (joined(output.get("ename")), joined(output.get("evalue")))))
    data = forms(output)
    text = joined(output.get("text") or next((data[form] for form in TEXTS if form in data), ""))
    if kind != "stream" and OBJECT.fullmatch(text.strip()):
        return ""
    # A line that a program wrote over again shows what was written last.
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in COLOURS.sub("", text).split("\n"))


def authors(notebook: Json) -> Json:
    names = [detail(joined(author.get("name"))) for author in items(field(notebook, "metadata"), "authors")]
    return {"author": ", ".join(filter(None, names))} if any(names) else {}


def level_of(cell: Json) -> int:
    level = cell.get("level")
    return min(max(level, 1), 6) if isinstance(level, int) else 1


def joined(text: Any) -> str:
    """A text, which a notebook may keep as a list of lines."""
    if isinstance(text, list):
        return "".join(line for line in text if isinstance(line, str))
    return text if isinstance(text, str) else ""


def field(value: Json, name: str) -> Json:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def items(value: Json, name: str) -> list[Json]:
    found = value.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
