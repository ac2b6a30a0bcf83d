"""EPUB: the chapters of a book in the order in which it is read, each as Markdown under its title; after
each page what OCR reads in its pictures.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from html import unescape
from itertools import islice
from urllib.parse import unquote

from lxml import etree

from kb.core.errors import JobFailure
from kb.core.types import Json
from kb.core.values import Anchor
from kb.ingest.extract.archive import Archive
from kb.ingest.extract.encoding import decoded
from kb.ingest.extract.html import page_parts
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.pictures import Pictures, Shown
from kb.ingest.extract.tidy import detail
from kb.ingest.extract.titles import real_title
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.xml import attribute, local

CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
# How fonts are obscured: the text of such a book is not.
OF_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
PAGES = ("application/xhtml+xml", "text/html", "image/svg+xml", "text/x-oeb1-document")
DETAILS = {"creator": "author", "subject": "subject", "description": "description", "publisher": "publisher"}
MAX_ENTRIES = 10_000  # of a table of contents
# Elements that have no content: a page that is XML may close any other one at once.
VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
CLOSED = re.compile(r"<([A-Za-z][\w:.-]*)(\s[^<>]*?)?/>")
NAMED = re.compile(r"<[A-Za-z][^<>]*?\s(?:id|name)\s*=\s*[\"']([^\"'<>]+)[\"']")
# Noncharacters around the number of a chapter that begins inside of a page.
START, END = "\ufdd2", "\ufdd3"
MARK = re.compile(f"{START}(\\d+){END}")
MARKS = str.maketrans("", "", START + END)
PICTURE = re.compile(
    MARK.pattern + r"|<(?:img|(?:svg:)?image)\s[^<>]*?(?:src|href)\s*=\s*[\"']([^\"'<>]+)", re.IGNORECASE
)

Entries = dict[str, dict[str, str]]  # the titles in the table of contents, by page and by place in it


def parts(source: Source, ocr: Ocr) -> Iterator[Part]:
    book = Archive(source)
    refuse_encrypted(book)
    main = main_member(book)
    package = book.xml(main)
    listed = {attribute(item, "id"): item for item in package.iter("{*}item")}
    order = dict.fromkeys(attribute(item, "idref") for item in package.iter("{*}itemref"))
    items = [listed[name] for name in order if name in listed]
    entries = contents(book, main, package)
    about = partial(Part, title=title_of(package), metadata=metadata_of(package), total=len(items))
    pictures = Pictures(book, ocr)
    chapter = ""
    for number, item in enumerate(items, 1):
        member = target(main, attribute(item, "href"))
        titles = entries.get(member, {})
        chapter = titles.get("") or chapter or str(number)
        kind = attribute(item, "media-type") or ""
        begun = chapter
        for title, part in chapters(book, member, kind, titles, chapter):
            chapter = title
            name = f"chapter {title}{part.name.removeprefix('text')}"
            where = Anchor(chapter=title)
            yield about(name, part.text, where, part.outcome, number=number, hidden=part.hidden)
        for title, members in page_pictures(book, member, kind, titles, begun):
            page = about(f"chapter {title}", "", Anchor(chapter=title), number=number)
            yield from pictures.on(page, [Shown(name) for name in members])
    images = (item for item in listed.values() if (attribute(item, "media-type") or "").startswith("image/"))
    yield from pictures.elsewhere(filter(book.has, (target(main, attribute(item, "href")) for item in images)))


def chapters(book: Archive, member: str, kind: str, titles: dict[str, str], chapter: str) -> Iterator[tuple[str, Part]]:
    """The parts of a page, each with the title of its chapter; a page begins in the chapter before."""
    if not book.has(member) or kind not in PAGES:
        reason = (
            f"{member!r} is of the type {kind!r}, which is not read" if book.has(member) else f"{member!r} is missing"
        )
        yield chapter, Part("", "", outcome=Outcome("failed", reason, "corrupt"))
        return
    said = list(titles.values())
    try:
        found = list(page_parts(book.read(member), partial(prepared, names=places(titles))))
    except JobFailure as failure:
        if failure.code != "corrupt":
            raise
        yield chapter, Part("", "", outcome=Outcome("failed", failure.message, failure.code))
        return
    for part in found:
        for title, text in list(divided(part.text, said, chapter)) or [(chapter, "")]:
            yield title, replace(part, text=text, outcome=part.outcome if text else EMPTY)


def page_pictures(
    book: Archive, member: str, kind: str, titles: dict[str, str], chapter: str
) -> Iterator[tuple[str, list[str]]]:
    """The pictures of a page, by the title of the chapter that they stand in."""
    if not book.has(member) or kind not in PAGES:
        return
    try:
        page = prepared(decoded(book.read(member)).text, places(titles))
    except JobFailure:
        return  # the ledger says so of the page
    found: dict[str, list[str]] = {}
    for tag in PICTURE.finditer(page):
        if tag[1]:
            chapter = list(titles.values())[int(tag[1])]
        elif book.has(name := target(member, unescape(tag[2]))):
            found.setdefault(chapter, []).append(name)
    yield from found.items()


def places(titles: dict[str, str]) -> dict[str, int]:
    """The numbers of the chapters that begin inside of a page, by the names of their places."""
    return {place: number for number, place in enumerate(titles) if place}


def prepared(page: str, names: dict[str, int]) -> str:
    """A page as a reader of HTML understands it, with marks where chapters begin."""
    page = CLOSED.sub(opened_and_closed, page.translate(MARKS))
    if not names:
        return page
    return NAMED.sub(lambda tag: f"{START}{names[tag[1]]}{END}{tag[0]}" if tag[1] in names else tag[0], page)


def opened_and_closed(tag: re.Match[str]) -> str:
    name, rest = tag[1], tag[2] or ""
    return tag[0] if name.lower() in VOID else f"<{name}{rest}></{name}>"


def divided(text: str, titles: list[str], chapter: str) -> Iterator[tuple[str, str]]:
    """The text of each chapter on a page, cut before the lines that have marks."""
    begin = 0
    for mark in MARK.finditer(text):
        at = text.rfind("\n", 0, mark.start()) + 1
        if piece := MARK.sub("", text[begin:at]).strip():
            yield chapter, piece
        chapter, begin = titles[int(mark[1])], at
    if piece := MARK.sub("", text[begin:]).strip():
        yield chapter, piece


def refuse_encrypted(book: Archive) -> None:
    if book.has(ENCRYPTION):
        methods = [attribute(method, "Algorithm") for method in book.xml(ENCRYPTION).iter("{*}EncryptionMethod")]
        if any(method not in OF_FONTS for method in methods):
            raise JobFailure("encrypted", "The book is protected against copying.")


def main_member(book: Archive) -> str:
    """The member that lists all others."""
    found = next(book.xml(CONTAINER).iter("{*}rootfile"), None)
    name = None if found is None else attribute(found, "full-path")
    if not name:
        raise JobFailure("corrupt", "The book does not say where its content is.")
    return name


def target(base: str, link: str | None) -> str:
    """The member that a link leads to."""
    path = unquote((link or "").partition("#")[0])
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(base), path)).lstrip("/") if path else base


def contents(book: Archive, main: str, package: etree._Element) -> Entries:
    """The table of contents: of version 3 if there is one, else of version 2."""
    items = list(package.iter("{*}item"))
    listed = [item for item in items if "nav" in (attribute(item, "properties") or "").split()]
    listed += [item for item in items if attribute(item, "media-type") == "application/x-dtbncx+xml"]
    for item in listed:
        member = target(main, attribute(item, "href"))
        try:
            found = entries_of(book.xml(member), member) if book.has(member) else {}
        except JobFailure as failure:
            if failure.code != "corrupt":
                raise
            continue  # the chapters can be read without their titles
        if found:
            return found
    return {}


def entries_of(root: etree._Element, base: str) -> Entries:
    found: Entries = defaultdict(dict)
    for title, link in islice(links(root), MAX_ENTRIES):
        if title and link:
            found[target(base, link)].setdefault(unquote(link.partition("#")[2]), title)
    return found


def links(root: etree._Element) -> Iterator[tuple[str, str | None]]:
    """Titles and where they lead, in order."""
    for point in root.iter("{*}navPoint"):
        text, content = point.find("{*}navLabel/{*}text"), point.find("{*}content")
        if text is not None and content is not None:
            yield detail(text.text), attribute(content, "src")
    for nav in root.iter("{*}nav"):
        if attribute(nav, "type") == "toc":
            for link in nav.iter("{*}a"):
                yield detail("".join(str(text) for text in link.itertext())), attribute(link, "href")


def title_of(package: etree._Element) -> str | None:
    return next(filter(None, (real_title(title.text) for title in package.iter("{*}title"))), None)


def metadata_of(package: etree._Element) -> Json:
    found: dict[str, list[str]] = defaultdict(list)
    for group in package.iter("{*}metadata"):
        for element in group.iter("{*}creator", "{*}subject", "{*}description", "{*}publisher"):
            if value := detail(element.text):
                found[DETAILS[local(element)]].append(value)
    return {name: ", ".join(dict.fromkeys(values)) for name, values in found.items()}
