"""What a paragraph's style says about it: the level of a heading, or that it is an item of a list."""

from lxml import etree

from kb.ingest.extract.ooxml import Package
from kb.ingest.extract.xml import OFF, attribute, child_value, local

MAX_LEVEL = 6
MAX_CHAIN = 20  # styles that one is based on
SMALLEST = 2  # half points: anything smaller cannot be read


class Styles:
    def __init__(self, package: Package, document: str) -> None:
        self._styles: dict[str, etree._Element] = {}
        self._hiding: dict[str, str | None] = {}  # by the name of a style
        for name in package.related(document, "styles"):
            for style in package.xml(name).iterchildren("{*}style"):
                self._styles[attribute(style, "styleId") or ""] = style

    def level(self, paragraph: etree._Element) -> int:
        """The level of a heading; 0 for none."""
        properties = paragraph.find("{*}pPr")
        if properties is None:
            return 0
        own = level_in(properties)
        return own if own is not None else self._level(child_value(properties, "pStyle"))

    def item(self, paragraph: etree._Element) -> tuple[str, int] | None:
        """The list that a paragraph is counted in, and how deep, as it says itself or its style does."""
        properties = paragraph.find("{*}pPr")
        for _ in range(MAX_CHAIN):
            if properties is None:
                return None
            numbered = properties.find("{*}numPr")
            if numbered is not None:
                list_id, depth = child_value(numbered, "numId") or "0", child_value(numbered, "ilvl") or "0"
                return (list_id, int(depth) if depth.isdigit() else 0) if list_id != "0" else None
            style = self._styles.get(child_value(properties, "pStyle") or "")
            properties = None if style is None else style.find("{*}pPr")
        return None

    def of_paragraph(self, paragraph: etree._Element) -> str:
        """The style of a paragraph."""
        properties = paragraph.find("{*}pPr")
        return "" if properties is None else child_value(properties, "pStyle") or ""

    def way_hidden(self, run: etree._Element, paragraph_style: str) -> str | None:
        """The way in which a run of text is hidden, as it says itself, or its style, or its paragraph's; or None."""
        properties = run[0] if len(run) else None  # they come first
        if properties is None or local(properties) != "rPr":
            return self._style_hides(paragraph_style) if paragraph_style else None
        way, said = way_in(properties)
        if said:
            return way
        style = child_value(properties, "rStyle") or ""
        return way or self._style_hides(style) or self._style_hides(paragraph_style)

    def _style_hides(self, name: str) -> str | None:
        if name not in self._hiding:
            self._hiding[name] = self._way_of(name)
        return self._hiding[name]

    def _way_of(self, name: str) -> str | None:
        for _ in range(MAX_CHAIN):
            style = self._styles.get(name)
            if style is None:
                return None
            properties = style.find("{*}rPr")
            if properties is not None:
                way, said = way_in(properties)
                if way or said:
                    return way
            name = child_value(style, "basedOn") or ""
        return None

    def _level(self, name: str | None) -> int:
        for _ in range(MAX_CHAIN):
            style = self._styles.get(name or "")
            if style is None:
                return 0
            called = (child_value(style, "name") or "").lower()
            if called == "title":
                return 1
            if called.startswith("heading ") and called[8:].isdigit():
                return min(int(called[8:]), MAX_LEVEL)
            properties = style.find("{*}pPr")
            level = None if properties is None else level_in(properties)
            if level is not None:
                return level
            name = child_value(style, "basedOn")
        return 0


def way_in(properties: etree._Element) -> tuple[str | None, bool]:
    """The way in which properties of a text hide it, and whether they say of `vanish` that it is so or not."""
    way = None
    for one in properties:
        kind = local(one)
        if kind == "vanish":
            return (None if attribute(one, "val") in OFF else "vanish"), True
        if kind == "sz" and (size := attribute(one, "val") or "").isdigit() and int(size) < SMALLEST:
            way = "tiny"
    return way, False


def level_in(properties: etree._Element) -> int | None:
    """The level that paragraph properties state; 0 for body text."""
    stated = child_value(properties, "outlineLvl")
    if stated is None or not stated.isdigit():
        return None
    return int(stated) + 1 if int(stated) < MAX_LEVEL else 0
