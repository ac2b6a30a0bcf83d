"""What drawings say in Office files: alternative texts, charts, diagrams."""

from collections.abc import Iterator

from lxml import etree

from kb.ingest.extract.ooxml import Package
from kb.ingest.extract.tidy import one_line
from kb.ingest.extract.xml import attribute, local


def alt_texts(properties: etree._Element) -> Iterator[str]:
    """What an image's author wrote for those who cannot see it."""
    told = dict.fromkeys(one_line(attribute(properties, name) or "") for name in ("title", "descr"))
    if text := ". ".join(filter(None, told)):
        yield f" [{text}] "


def drawing_texts(package: Package, name: str) -> Iterator[str]:
    """The texts of the charts and diagrams that a part shows."""
    for diagram in package.related(name, "diagramData"):
        yield "\n".join(paragraphs(package.xml(diagram)))
    for chart in package.related(name, "chart"):
        yield "\n".join(dict.fromkeys(chart_texts(package.xml(chart))))


def paragraphs(root: etree._Element) -> Iterator[str]:
    for paragraph in root.iter("{*}p"):
        if text := one_line("".join(node.text or "" for node in paragraph.iter("{*}t"))):
            yield text


def chart_texts(root: etree._Element) -> Iterator[str]:
    """Titles, then the names of series and categories; the numbers stand in the sheet."""
    yield from paragraphs(root)
    for cached in root.iter("{*}strCache"):
        for node in cached.iter("{*}v"):
            if local(node) == "v" and (text := one_line(node.text or "")):
                yield text
