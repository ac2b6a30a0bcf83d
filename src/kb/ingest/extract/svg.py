"""SVG: its title, its descriptions and every text in it, in the order of the file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml import etree

from kb.ingest.extract.css import way_hidden
from kb.ingest.extract.encoding import decoded
from kb.ingest.extract.hidden import marked, separated, with_hidden, without_marks
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.tidy import one_line
from kb.ingest.extract.tools import Ocr, Source
from kb.ingest.extract.xml import attribute, local, parse

DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")  # says how bytes are to be read, which they have been
TOLD = ("text", "title", "desc", "foreignObject", "flowRoot")
APART = ("div", "p", "br", "flowPara")
SKIPPED = ("style", "script")
DESCRIBES = ("title", "desc")  # shown by no viewer, and read out by many
DRAWN = ("{*}rect", "{*}path", "{*}circle", "{*}ellipse", "{*}polygon", "{*}image", "{*}use")  # white is seen on them
INHERITED = ("visibility", "fill", "fill-opacity", "stroke")
FINAL = ("display", "opacity")
DECIDES = {*INHERITED, *FINAL}


@dataclass(frozen=True, slots=True)
class Style:
    """The properties of an element and its ancestors that decide whether text is shown."""

    on_white: bool  # nothing is drawn that white could be seen on
    ways: set[str]  # in which texts are hidden; filled in
    inherited: dict[str, str] = field(default_factory=dict)  # what those inside take over, unless they say otherwise
    gone: str | None = None  # in which way all that is inside is hidden, whatever it says

    def within(self, element: etree._Element) -> "Style":
        said: dict[str, str] = {}
        for key, value in element.attrib.items():
            name = str(key).rpartition("}")[2]
            if name == "style":
                declared = (one.partition(":") for one in str(value).split(";"))
                said |= {name.strip().lower(): value.strip() for name, _, value in declared}
            elif name in DECIDES:
                said.setdefault(name, str(value).strip())
        if not said:
            return self
        final = declarations({name: said[name] for name in FINAL if name in said})
        inherited = self.inherited | {name: said[name] for name in INHERITED if name in said}
        return Style(self.on_white, self.ways, inherited, self.gone or way_hidden(final, on_white=False))

    def shown(self, text: str | None) -> str:
        """A text with marks around it if it is hidden."""
        way = self.gone
        if way is None and self.inherited:
            way = way_hidden(declarations(self.inherited), on_white=self.on_white)
            if self.inherited.get("fill") == "none" and self.inherited.get("stroke", "none") == "none":
                way = "transparent"
        if way is None or not (text or "").strip():
            return without_marks(text or "")
        self.ways.add(way)
        return marked(without_marks(text or ""))


def declarations(said: dict[str, str]) -> str:
    return ";".join(f"{name}:{value}" for name, value in said.items())


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    found = decoded(source.read_bytes())
    root = parse(DECLARATION.sub("", found.text, count=1).encode("utf-8", "replace"))
    style = Style(next(root.iter(*DRAWN), None) is None, set())
    text, hidden = separated("\n".join(texts(root, style)), style.ways)
    title = next((one_line("".join(child.itertext())) for child in root.iterchildren("{*}title")), "")
    part = Part("text", text, outcome=Outcome("ok", found.reason) if text else EMPTY, title=title or None)
    yield from with_hidden(part, hidden)


def texts(element: etree._Element, style: Style) -> Iterator[str]:
    style = style.within(element)
    if label := one_line(attribute(element, "aria-label") or ""):
        yield label
    for child in element.iterchildren("{*}*", "*"):
        if local(child) in DESCRIBES:
            if text := one_line("".join(child.itertext())):
                yield text
        elif local(child) in TOLD:
            if text := one_line(all_text(child, style)):
                yield text
        elif local(child) not in SKIPPED:
            yield from texts(child, style)


def all_text(element: etree._Element, style: Style) -> str:
    """Spans of one line belong together, those that are set to a place of their own do not."""
    style = style.within(element)
    pieces = [style.shown(element.text)]
    for child in element:
        if isinstance(child.tag, str) and local(child) not in SKIPPED:
            apart = " " if attribute(child, "x") or attribute(child, "y") or local(child) in APART else ""
            pieces += [apart, all_text(child, style), apart]
        pieces.append(style.shown(child.tail))  # also of a comment, an instruction, an entity
    return "".join(pieces)
