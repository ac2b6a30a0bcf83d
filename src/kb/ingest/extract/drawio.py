"""Drawings of draw.io: on each page the labels of the shapes, then which are connected."""

import html
import re
import zlib
from base64 import b64decode
from collections.abc import Iterator
from urllib.parse import unquote

from lxml import etree

from kb.core.errors import JobFailure
from kb.core.values import Anchor
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.svg import DECLARATION
from kb.ingest.extract.tidy import one_line, tidy
from kb.ingest.extract.xml import attribute, local, parse

MAX_BYTES = 50 * 2**20  # of a page, unpacked
LINE_END = re.compile(r"(?:<br\s*/?>|</?(?:div|p|li|tr|h[1-6]|ul|ol|table)\b[^<>]*>)+", re.IGNORECASE)
CELL_END = re.compile(r"</t[dh]>", re.IGNORECASE)
TAG = re.compile(r"<(?:/?[A-Za-z!][^<>]*)>")
NAME_CHARACTERS = 80  # of a shape in a connection
OBJECTS = ("object", "UserObject")  # wrap a shape and say more about it
OWN = frozenset("id label placeholders placeholder link tooltip".split())  # what draw.io itself puts there


def drawing(text: str) -> Iterator[Part]:
    root = parse(DECLARATION.sub("", text, count=1).encode("utf-8", "replace"))
    pages = list(root.iter("{*}diagram")) or [root]
    for number, page in enumerate(pages, 1):
        title = one_line(attribute(page, "name") or "")
        name = f"diagram {title or number}"
        try:
            said = page_text(unpacked(page))
        except (ValueError, zlib.error, JobFailure) as error:
            code = error.code if isinstance(error, JobFailure) else "corrupt"
            outcome = Outcome("failed", f"the page cannot be read: {str(error)[:200]}", code)
            said = ""
        else:
            outcome = Outcome() if said else EMPTY
        yield Part(name, said, Anchor(heading=title or None), outcome, number=number, total=len(pages))


def unpacked(page: etree._Element) -> etree._Element:
    """A page, which may be packed: URL-encoded, deflated, and written as base64."""
    if len(page) or local(page) != "diagram" or not (page.text or "").strip():
        return page
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    data = unpacker.decompress(b64decode(page.text or ""), MAX_BYTES)
    if unpacker.unconsumed_tail:
        raise JobFailure("too_complex", f"it unpacks to more than {MAX_BYTES // 2**20} MB")
    return parse(unquote(data.decode("utf-8", "replace")).encode("utf-8", "replace"))


def page_text(page: etree._Element) -> str:
    """The labels in order, then the connections, with the labels that stand on them."""
    labels: dict[str, str] = {}
    ties: dict[str, list[str]] = {}  # the ends of each connection, and its labels
    for shape in page.iter("{*}mxCell"):
        holder = shape.getparent()
        about = holder if holder is not None and local(holder) in OBJECTS else shape
        name = attribute(about, "id") or ""
        text = label_of(about, shape)
        tie = ties.get(attribute(shape, "parent") or "")
        if attribute(shape, "edge") == "1":
            ties[name] = [attribute(shape, "source") or "", attribute(shape, "target") or "", text]
        elif tie is not None:  # a label that was put onto a connection
            tie.append(text)
        elif text:
            labels[name] = text
    shown = [connection(labels.get(first, ""), labels.get(last, ""), said) for first, last, *said in ties.values()]
    return "\n\n".join(filter(None, [*labels.values(), "\n".join(filter(None, shown))]))


def label_of(about: etree._Element, shape: etree._Element) -> str:
    """What a shape says, and the properties that it was given."""
    said = [
        plain(attribute(about, "label") or attribute(shape, "value") or ""),
        plain(attribute(about, "tooltip") or ""),
    ]
    if about is not shape:
        given = ((str(key), one_line(str(value))) for key, value in about.attrib.items() if key not in OWN)
        said += [f"{key}: {value}" for key, value in given if value]
    return "\n".join(dict.fromkeys(filter(None, said)))


def connection(first: str, last: str, labels: list[str]) -> str:
    label = ", ".join(filter(None, map(one_line, labels)))
    ends = " → ".join(one_line(end)[:NAME_CHARACTERS] for end in (first, last) if end)
    return f"{ends}: {label}" if ends and label else label or (ends if first and last else "")


def plain(label: str) -> str:
    """A label without its markup."""
    if "<" in label:
        label = TAG.sub("", CELL_END.sub(" ", LINE_END.sub("\n", label)))
    return tidy(html.unescape(label))
