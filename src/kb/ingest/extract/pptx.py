"""PPTX: a part for every slide, as Markdown: its title, its texts and tables, its notes and comments;
after each of them what OCR reads in its pictures.
"""

from collections.abc import Iterator

from lxml import etree

from kb.core.errors import JobFailure
from kb.core.values import Anchor
from kb.ingest.extract.drawings import alt_texts, drawing_texts, paragraphs
from kb.ingest.extract.ooxml import Package
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.pictures import Pictures, Shown
from kb.ingest.extract.tables import markdown_table
from kb.ingest.extract.tidy import one_line, tidy
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.xml import OFF, attribute, local, relation_id

BREAKS = {"br": "\n", "tab": "\t"}
TITLES = ("title", "ctrTitle")


def parts(source: Source, ocr: Ocr) -> Iterator[Part]:
    package = Package(source)
    slides = slide_names(package)
    if not slides:
        raise JobFailure("no_text", "No text found: the presentation has no slides.")
    title = package.title
    authors = comment_authors(package)
    pictures = Pictures(package, ocr)
    for number, name in enumerate(slides, 1):
        text, outcome, hidden = slide_text(package, name, authors)
        slide = Part(
            name=f"slide {number}",
            text=text,
            anchor=Anchor(slide=number),
            outcome=outcome,
            title=title or heading_of(text),
            metadata=package.metadata if number == 1 else {},
            number=number,
            total=len(slides),
            hidden=hidden,
        )
        yield slide
        shown = slide_pictures(package, name) if outcome.state != "failed" else []
        yield from pictures.on(slide, [Shown(member, heading_of(text)) for member in shown])
    yield from pictures.elsewhere(package.pictures())


def heading_of(text: str) -> str | None:
    """The title of a slide, which names the presentation that names itself nowhere."""
    first = text.partition("\n")[0]
    return first.removeprefix("# ") if first.startswith("# ") else None


def slide_names(package: Package) -> list[str]:
    """The slides in the order in which they are shown, hidden ones included."""
    main = package.main()
    relations = package.relations(main)
    listed = [
        relations.get(relation_id(slide))
        for group in package.xml(main).iter("{*}sldIdLst")
        for slide in group.iterchildren("{*}sldId")
    ]
    return [relation.target for relation in listed if relation and package.has(relation.target)]


def slide_text(package: Package, name: str, authors: dict[str, str]) -> tuple[str, Outcome, bool]:
    """What a slide says, how reading it went, and whether it is skipped when the presentation is shown."""
    try:
        root = package.xml(name)
        text = "\n\n".join(filter(None, slide_blocks(package, name, root, authors)))
    except JobFailure as failure:
        if failure.code != "corrupt":
            raise
        return "", Outcome("failed", failure.message, failure.code), False  # the other slides may be whole
    if text and attribute(root, "show") in OFF:
        return text, Outcome("ok", "the slide is hidden"), True
    return text, Outcome() if text else EMPTY, False


def slide_blocks(package: Package, name: str, root: etree._Element, authors: dict[str, str]) -> Iterator[str]:
    blocks = [block for tree in root.iter("{*}spTree") for block in shapes(tree)]
    # The title comes first, wherever its shape stands in the file.
    yield from (text for is_title, text in blocks if is_title)
    yield from (text for is_title, text in blocks if not is_title)
    yield from drawing_texts(package, name)
    for notes in package.related(name, "notesSlide"):
        if text := "\n".join(notes_text(package.xml(notes))):
            yield f"Notes: {text}"
    for comments in package.related(name, "comments"):
        yield from comment_texts(package.xml(comments), authors)


def slide_pictures(package: Package, name: str) -> list[str]:
    """The members that are shown as pictures, in the order of the file."""
    relations = package.relations(name)
    if not any(relation.kind == "image" for relation in relations.values()):
        return []
    found = (relations.get(attribute(blip, "embed") or "") for blip in package.xml(name).iter("{*}blip") if seen(blip))
    return [relation.target for relation in found if relation and package.has(relation.target)]


def seen(blip: etree._Element) -> bool:
    """Whether a picture is more than what old programs show instead of a formula or the like."""
    around = {local(element) for element in blip.iterancestors()}
    return "Fallback" not in around or "oleObj" in around


def shapes(tree: etree._Element) -> Iterator[tuple[bool, str]]:
    """Every shape's text in the order of the file, groups opened; whether it is the slide's title."""
    for shape in tree:
        kind = local(shape)
        if kind in ("grpSp", "AlternateContent", "Choice"):
            yield from shapes(shape)
            continue
        for table in shape.iter("{*}tbl"):
            yield False, table_text(table)
        for body in shape.iterchildren("{*}txBody"):
            text = body_text(body)
            is_title = placeholder(shape) in TITLES and bool(text)
            yield is_title, f"# {' '.join(text.split())}" if is_title else text
        for properties in shape.iter("{*}cNvPr"):
            yield from ((False, text.strip()) for text in alt_texts(properties))


def placeholder(shape: etree._Element) -> str:
    found = next(shape.iter("{*}ph"), None)
    return "" if found is None else attribute(found, "type") or "body"


def body_text(body: etree._Element) -> str:
    lines: list[str] = []
    count = 0
    for paragraph in body.iterchildren("{*}p"):
        text = paragraph_text(paragraph)
        is_numbered = paragraph.find("{*}pPr/{*}buAutoNum") is not None
        count = count + 1 if is_numbered and text else count if is_numbered else 0
        lines.append(f"{count}. {text}" if is_numbered and text else text)
    return "\n".join(filter(None, lines))


def paragraph_text(paragraph: etree._Element) -> str:
    pieces = [node.text or "" if local(node) == "t" else BREAKS.get(local(node), "") for node in paragraph.iter()]
    return tidy("".join(pieces))


def table_text(table: etree._Element) -> str:
    rows: list[list[str]] = []
    for row in table.iterchildren("{*}tr"):
        cells: list[str] = []
        for cell in row.iterchildren("{*}tc"):
            text = " ".join(body_text(body) for body in cell.iterchildren("{*}txBody"))
            # What is merged stands in every cell that it covers: a row can be read on its own.
            if attribute(cell, "hMerge") and cells:
                text = cells[-1]
            elif attribute(cell, "vMerge") and rows and len(cells) < len(rows[-1]):
                text = rows[-1][len(cells)]
            cells.append(text)
        rows.append(cells)
    return markdown_table(rows)


def notes_text(root: etree._Element) -> Iterator[str]:
    """What the speaker wrote; the slide's picture and number beside it are no text."""
    for shape in root.iter("{*}sp"):
        if placeholder(shape) not in ("sldNum", "sldImg", "hdr", "dt"):
            yield from filter(None, (body_text(body) for body in shape.iterchildren("{*}txBody")))


def comment_authors(package: Package) -> dict[str, str]:
    """Who wrote comments, by id."""
    found: dict[str, str] = {}
    for name in package.related(package.main(), "commentAuthors", "authors"):
        for author in package.xml(name):
            found[attribute(author, "id") or ""] = attribute(author, "name") or ""
    return found


def comment_texts(root: etree._Element, authors: dict[str, str]) -> Iterator[str]:
    """Old comments have one text each, newer ones have paragraphs and replies."""
    for comment in root.iter("{*}cm", "{*}reply"):
        texts = [one_line(old.text or "") for old in comment.iterchildren("{*}text")]
        texts += [text for body in comment.iterchildren("{*}txBody") for text in paragraphs(body)]
        author = authors.get(attribute(comment, "authorId") or "")
        if said := " ".join(texts):
            yield f"[{author}: {said}]" if author else f"[{said}]"
