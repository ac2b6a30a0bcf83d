"""ODP: a part for every slide, as Markdown: its title, its texts and tables, its notes and comments;
after each of them what OCR reads in its pictures.
"""

from collections.abc import Iterator
from dataclasses import replace

from lxml import etree

from kb.core.errors import JobFailure
from kb.core.values import Anchor
from kb.ingest.extract.opendocument import PICTURES, OpenDocument, blocks
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.pictures import Pictures
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.xml import attribute, local


def parts(source: Source, ocr: Ocr) -> Iterator[Part]:
    document = OpenDocument(source)
    slides = list(document.body().iterchildren("{*}page"))
    if not slides:
        raise JobFailure("no_text", "No text found: the presentation has no slides.")
    title = document.title
    pictures = Pictures(document, ocr)
    for number, slide in enumerate(slides, 1):
        heading, text = slide_text(slide)
        title = title or heading
        part = Part(
            name=f"slide {number}",
            text=text,
            anchor=Anchor(slide=number),
            outcome=Outcome() if text else EMPTY,
            title=title,
            metadata=document.metadata if number == 1 else {},
            number=number,
            total=len(slides),
        )
        yield part
        yield from pictures.on(part, [replace(shown, heading=heading) for shown in document.pictures(slide)])
    yield from pictures.elsewhere(document.names(PICTURES))


def slide_text(slide: etree._Element) -> tuple[str | None, str]:
    """The title of a slide, and all that it says: the title first, what the speaker wrote last."""
    titles: list[str] = []
    texts: list[str] = []
    notes: list[str] = []
    for shape in slide:
        found = list(filter(None, blocks(shape)))
        if attribute(shape, "class") == "title":
            titles += [" ".join(" ".join(found).split())] if found else []
        elif local(shape) == "notes":
            notes += [block for one in shape if attribute(one, "class") == "notes" for block in blocks(one) if block]
        elif local(shape) == "annotation":
            texts += [f"[{' '.join(found)}]"] if found else []
        else:
            texts += found
    spoken = ["Notes: " + "\n".join(notes)] if notes else []
    return titles[0] if titles else None, "\n\n".join([*(f"# {said}" for said in titles), *texts, *spoken])
