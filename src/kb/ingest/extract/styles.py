"""What a paragraph's style says about it: the level of a heading, or that it is an item of a list."""

from lxml import etree

from kb.ingest.extract.ooxml import Package
from kb.ingest.extract.xml import attribute, local

MAX_LEVEL = 6
MAX_CHAIN = 20  # styles that one is based on


class Styles:
    def __init__(self, package: Package, document: str) -> None:
        self._styles: dict[str, etree._Element] = {}
        for name in package.related(document, "styles"):
            for style in package.xml(name).iterchildren("{*}style"):
                self._styles[attribute(style, "styleId") or ""] = style

    def of(self, paragraph: etree._Element) -> tuple[int, bool]:
        """The level of a heading, 0 for none; whether it is an item of a list."""
        properties = paragraph.find("{*}pPr")
        if properties is None:
            return 0, False
        own = level_in(properties)
        name = child_value(properties, "pStyle")
        level = own if own is not None else self._level(name)
        return level, properties.find("{*}numPr") is not None and not level

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


def level_in(properties: etree._Element) -> int | None:
    """The level that paragraph properties state; 0 for body text."""
    stated = child_value(properties, "outlineLvl")
    if stated is None or not stated.isdigit():
        return None
    return int(stated) + 1 if int(stated) < MAX_LEVEL else 0


def child_value(element: etree._Element, name: str) -> str | None:
    child = element.find("{*}" + name)
    return None if child is None or local(child) != name else attribute(child, "val")
