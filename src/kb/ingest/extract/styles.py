"""What a paragraph's style says about it: the level of a heading, or that it is an item of a list."""

from lxml import etree

from kb.ingest.extract.ooxml import Package
from kb.ingest.extract.xml import attribute, child_value

MAX_LEVEL = 6
MAX_CHAIN = 20  # styles that one is based on


class Styles:
    def __init__(self, package: Package, document: str) -> None:
        self._styles: dict[str, etree._Element] = {}
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
