"""Markdown: one part, as it is; its title from the front matter or the first heading."""

import re
from collections.abc import Iterator

from kb.ingest.extract.encoding import decoded
from kb.ingest.extract.part import Outcome, Part
from kb.ingest.extract.tools import Ocr, Source

FRONT_MATTER_TITLE = re.compile(r"\A---\n(?:.*\n)*?title:[ \t]*(?P<title>[^\n]+)\n(?:.*\n)*?---(?:\n|\Z)")
TOP_HEADING = re.compile(r"^#[ \t]+(?P<title>[^\n]+?)[ \t]*#*[ \t]*$", re.MULTILINE)
TITLE_WITHIN = 10_000  # a title stands at the start


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    found = decoded(source.read_bytes())
    yield Part("text", found.text, outcome=Outcome("ok", found.reason), title=title_of(found.text))


def title_of(text: str) -> str | None:
    """The title in the front matter, or the first heading of the first level."""
    head = text[:TITLE_WITHIN]
    found = FRONT_MATTER_TITLE.match(head) or TOP_HEADING.search(head)
    return found["title"].strip().strip("\"'") or None if found else None
