"""What drawings say in Office files: alternative texts, charts, diagrams."""

import re
from collections.abc import Iterator
from itertools import zip_longest

from lxml import etree

from kb.ingest.extract.ooxml import Package
from kb.ingest.extract.tables import markdown_table
from kb.ingest.extract.tidy import one_line
from kb.ingest.extract.xml import attribute, local

MAX_POINTS = 1000  # of a series
# What programs put where an author wrote nothing: a file's name, a remark about themselves.
NOT_WRITTEN = re.compile(
    r"^\S+\.(?:png|jpe?g|gif|emf|wmf|bmp|tiff?|svg|webp)$|\s*Description automatically generated(?: with .*)?$"
    r"|\s*AI-generated content may be incorrect\.?$",
    re.IGNORECASE,
)


def alt_texts(properties: etree._Element) -> Iterator[str]:
    """The alternative texts of images."""
    told = dict.fromkeys(
        NOT_WRITTEN.sub("", one_line(attribute(properties, name) or "")) for name in ("title", "descr")
    )
    if text := ". ".join(filter(None, told)):
        yield f" [{text}] "


def drawing_texts(package: Package, name: str) -> Iterator[str]:
    """The texts of the charts and diagrams that a part shows."""
    for diagram in package.related(name, "diagramData"):
        yield "\n".join(paragraphs(package.xml(diagram)))
    for chart in package.related(name, "chart"):
        yield from chart_texts(package.xml(chart))


def paragraphs(root: etree._Element) -> Iterator[str]:
    for paragraph in root.iter("{*}p"):
        if text := one_line("".join(node.text or "" for node in paragraph.iter("{*}t"))):
            yield text


def chart_texts(root: etree._Element) -> Iterator[str]:
    """Titles, then the kind of chart and its figures: a row for each category, a column for each series."""
    yield "\n".join(dict.fromkeys(paragraphs(root)))
    for plot in root.iter():
        if local(plot).endswith("Chart"):
            series = list(plot.iterchildren("{*}ser"))
            yield f"{local(plot).removesuffix('Chart').removesuffix('3D').capitalize()} chart"
            yield chart_table(series)


def chart_table(series: list[etree._Element]) -> str:
    columns = [[*points(one, "tx"), *[""]][:1] + points(one, "val") + points(one, "yVal") for one in series]
    categories = max((["", *points(one, "cat"), *points(one, "xVal")] for one in series), key=len, default=[])
    return markdown_table(
        list(zip_longest(*(column for column in (categories, *columns) if any(column)), fillvalue=""))
    )


def points(series: etree._Element, name: str) -> list[str]:
    """The values that a chart keeps a copy of."""
    return [
        shown_number(node.text or "") for found in series.iterchildren("{*}" + name) for node in found.iter("{*}v")
    ][:MAX_POINTS]


def shown_number(text: str) -> str:
    """Without the noise that binary fractions leave."""
    try:
        return f"{float(text):.10g}" if "." in text else one_line(text)
    except ValueError:
        return one_line(text)
