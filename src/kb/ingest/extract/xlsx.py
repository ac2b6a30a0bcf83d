"""XLSX: the cells of every sheet, its comments, drawings and charts; then what OCR reads in its pictures."""

from collections.abc import Iterator

from lxml import etree

from kb.ingest.extract.columns import column_name
from kb.ingest.extract.drawings import alt_texts, drawing_texts, paragraphs
from kb.ingest.extract.ooxml import Package
from kb.ingest.extract.part import Part
from kb.ingest.extract.pictures import Pictures, Shown
from kb.ingest.extract.tidy import one_line
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.workbook import HEADING, Piece, sheets
from kb.ingest.extract.xml import attribute, relation_id

PLACEHOLDER = "[Threaded comment]"  # what programs see that know only the older kind of comments


def parts(source: Source, ocr: Ocr) -> Iterator[Part]:
    package = Package(source)
    members = sheet_members(package)
    told = {name: "\n".join(filter(None, remarks(package, member))) for name, member in members.items()}
    said: dict[str, list[Piece]] = {name: [(None, text)] for name, text in told.items() if text}
    shown = {name: list(sheet_pictures(package, name, member)) for name, member in members.items()}
    pictures = Pictures(package, ocr)
    yield from pictures.beside(sheets(source, package.title, package.metadata, said), shown)
    yield from pictures.elsewhere(package.pictures())


def sheet_members(package: Package) -> dict[str, str]:
    """The members that the sheets are, by their names."""
    main = package.main()
    relations = package.relations(main)
    listed = ((attribute(sheet, "name") or "", relation_id(sheet)) for sheet in package.xml(main).iter("{*}sheet"))
    return {name: relations[relation].target for name, relation in listed if relation in relations}


def sheet_pictures(package: Package, name: str, sheet: str) -> Iterator[Shown]:
    """The pictures of a sheet, each under the cell that it begins at."""
    for drawing in package.related(sheet, "drawing"):
        relations = package.relations(drawing)
        for anchored in package.xml(drawing):
            cell = first_cell(anchored)
            for blip in anchored.iter("{*}blip"):
                relation = relations.get(attribute(blip, "embed") or "")
                if relation and package.has(relation.target):
                    yield Shown(relation.target, HEADING.join(filter(None, (name, cell))))


def first_cell(anchored: etree._Element) -> str:
    """The cell at which a drawing begins; none for one that stands free of them."""
    column, row = (anchored.findtext(f"{{*}}from/{{*}}{name}") or "" for name in ("col", "row"))
    return f"{column_name(int(column))}{int(row) + 1}" if column.isdigit() and row.isdigit() else ""


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
