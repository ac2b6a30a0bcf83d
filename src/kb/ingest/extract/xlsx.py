"""XLSX: the cells of every sheet, its comments, drawings and charts."""

from collections.abc import Iterator

from lxml import etree

from kb.ingest.extract.drawings import alt_texts, drawing_texts, paragraphs
from kb.ingest.extract.ooxml import Package
from kb.ingest.extract.part import Part
from kb.ingest.extract.tidy import one_line
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.workbook import Piece, sheets
from kb.ingest.extract.xml import attribute, relation_id

PLACEHOLDER = "[Threaded comment]"  # what programs see that know only the older kind of comments


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    package = Package(source)
    yield from sheets(source, package.title, package.metadata, sheet_remarks(package))


def sheet_remarks(package: Package) -> dict[str, list[Piece]]:
    """Comments, drawings and charts of the sheets, by their names."""
    main = package.main()
    relations = package.relations(main)
    found: dict[str, list[Piece]] = {}
    for sheet in package.xml(main).iter("{*}sheet"):
        relation = relations.get(relation_id(sheet))
        if relation and (text := "\n".join(filter(None, remarks(package, relation.target)))):
            found[attribute(sheet, "name") or ""] = [(None, text)]
    return found


def remarks(package: Package, sheet: str) -> Iterator[str]:
    threaded = list(package.related(sheet, "threadedComment"))
    people = {attribute(one, "id"): attribute(one, "displayName") for one in persons(package)}
    for name in threaded:
        for comment in package.xml(name).iter("{*}threadedComment"):
            text = one_line("".join(node.text or "" for node in comment.iterchildren("{*}text")))
            yield remark(attribute(comment, "ref"), people.get(attribute(comment, "personId")), text)
    for name in package.related(sheet, "comments"):
        root = package.xml(name)
        authors = [one_line(author.text or "") for author in root.iter("{*}author")]
        for comment in root.iter("{*}comment"):
            text = one_line("".join(node.text or "" for node in comment.iter("{*}t")))
            number = attribute(comment, "authorId") or ""
            author = authors[int(number)] if number.isdigit() and int(number) < len(authors) else None
            if not (threaded and text.startswith(PLACEHOLDER)):
                yield remark(attribute(comment, "ref"), author, text)
    for name in package.related(sheet, "drawing"):
        root = package.xml(name)
        yield from paragraphs(root)
        for properties in root.iter("{*}cNvPr"):
            yield "".join(alt_texts(properties)).strip()
        yield from drawing_texts(package, name)


def remark(cell: str | None, author: str | None, text: str) -> str:
    return f"{cell} [{author}: {text}]" if author and text else f"{cell} [{text}]" if text else ""


def persons(package: Package) -> Iterator[etree._Element]:
    for name in package.related(package.main(), "person"):
        yield from package.xml(name)
