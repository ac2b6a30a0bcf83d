"""HTML: the page as Markdown, with its headings, lists and tables; scripts and addresses are left out."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

from kb.core.errors import JobFailure
from kb.core.types import Json
from kb.ingest.extract.detect import narrow, suffix_of
from kb.ingest.extract.encoding import decoded
from kb.ingest.extract.hidden import with_hidden
from kb.ingest.extract.html_hidden import without_hidden
from kb.ingest.extract.mails import is_saved_page
from kb.ingest.extract.mhtml import saved_page
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.tidy import detail
from kb.ingest.extract.tools import Ocr, Source

# What the converter puts before the page: lines without a blank one among them. A ruler has one after it.
FRONT_MATTER = re.compile(r"\A---\n(?:.+\n)+?---\n")
IMAGE = re.compile(r"!\[([^\]\n]*)\]\((?:[^()\n]|\([^()\n]*\))*\)")
OPTIONS = ConversionOptions(
    strip_tags=["a"],  # a link's text says something, its address does not
    autolinks=False,
    inline_data_media="alt_text_only",
    preprocessing=PreprocessingOptions(remove_navigation=False, remove_forms=False),
)


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    data = source.read_bytes()
    saved = narrow(data)
    is_saved = is_saved_page(saved, suffix_of(source.name))
    yield from text_parts(*saved_page(saved)) if is_saved else page_parts(data)


def page_parts(data: bytes, prepared: Callable[[str], str] = str) -> Iterator[Part]:
    """The text of a page, and what is hidden in it; `prepared` puts the page right before it is read."""
    found = decoded(data)
    yield from text_parts(prepared(found.text), found.reason)


def text_parts(html: str, reason: str | None) -> Iterator[Part]:
    """The same for a page whose encoding is known; `reason` is what the ledger says about it."""
    shown, hidden = without_hidden(html)
    page = convert(shown, OPTIONS)
    if page.warnings:  # beyond some depth of nesting, text would be missing
        raise JobFailure("too_complex", f"The page cannot be read whole: {page.warnings[0].message}")
    text = IMAGE.sub(described, FRONT_MATTER.sub("", page.content or "")).strip()
    about = page.metadata.document if page.metadata else None
    part = Part(
        "text",
        text,
        outcome=Outcome("ok", reason) if text else EMPTY,
        title=detail(about.title) or None if about else None,
        metadata=details(about) if about else {},
    )
    yield from with_hidden(part, hidden)


def described(image: re.Match[str]) -> str:
    """An image's description stands for it; one without any says nothing."""
    return f"[{image[1]}]" if image[1].strip() else ""


def details(about: Any) -> Json:
    found = {"author": about.author, "description": about.description, "keywords": ", ".join(about.keywords or ())}
    return {name: detail(value) for name, value in found.items() if value and value.strip()}
