"""Markdown, plain text and program sources: one part, decoded."""

import re
from collections.abc import Iterator
from pathlib import Path

from kb.errors import JobFailure
from kb.ingest.detect import encoding_of
from kb.ingest.extract.part import Part

FRONT_MATTER_TITLE = re.compile(r"\A---\n(?:.*\n)*?title:[ \t]*(?P<title>[^\n]+)\n(?:.*\n)*?---(?:\n|\Z)")
TOP_HEADING = re.compile(r"^#[ \t]+(?P<title>[^\n]+?)[ \t]*#*[ \t]*$", re.MULTILINE)
TITLE_WITHIN = 10_000  # a title stands at the start


def parts(path: Path) -> Iterator[Part]:
    text = decode(path.read_bytes())
    if not text.strip():
        raise JobFailure("no_text", "No text found: the file holds only white space.")
    yield Part("text", text)


def decode(data: bytes) -> str:
    encoding = encoding_of(data, complete=True)
    if encoding is None:
        raise JobFailure(
            "corrupt", "The file starts like text but holds bytes that no text has. Was it cut or damaged?"
        )
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        if encoding != "cp1252":
            raise JobFailure("corrupt", f"The file says it is {encoding}, but it is not valid {encoding}.") from None
        return data.decode("latin-1")


def markdown_title(text: str) -> str | None:
    """The title in the front matter, or the first heading of the first level."""
    head = text[:TITLE_WITHIN]
    found = FRONT_MATTER_TITLE.match(head) or TOP_HEADING.search(head)
    return found["title"].strip().strip("\"'") or None if found else None
