"""PPT: the text of every slide of an old presentation, and its speaker notes."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kb.core.errors import JobFailure
from kb.core.values import Anchor
from kb.ingest.extract.compound import Compound
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.tidy import tidy
from kb.ingest.extract.tools import Ocr, Source

SLIDES_STREAM = "PowerPoint Document"
DUAL = "PP97_DUALSTORAGE"  # holds the presentation of a file that PowerPoint 95 can read, too
HEAD = struct.Struct("<HHI")
CONTAINER = 0xF  # the version of a record that holds others
LIST, SLIDE_PLACE = 0x0FF0, 0x03F3  # a list of slides, and where one of them is kept
SLIDES, NOTES = 0, 2  # kinds of lists
TEXT_KIND, WIDE_TEXT, NARROW_TEXT, TEXT_REFERENCE = 0x0F9F, 0x0FA0, 0x0FA8, 0x0F9E
COMMENT, STRING, BLOB = 0x2EE0, 0x0FBA, 0x138B  # a blob holds records, too
NOTES_OF, SHOW, USER_EDIT, PLACES = 0x03F1, 0x03F9, 0x0FF5, 0x1772
TITLES = (0, 6)  # kinds of text
NUMBERS = ("*", "")  # what stands where the number of a slide or a date is put
IS_HIDDEN = 4  # a flag of how a slide is shown
ENCRYPTED = bytes.fromhex("dfc4d1f3")  # how the file says that it is, where it names the current edit
MAX_DEPTH, MAX_EDITS, MAX_SLIDES, MAX_RECORDS = 50, 10_000, 10_000, 3_000_000


class Record(NamedTuple):
    kind: int
    instance: int
    version: int
    start: int
    end: int


@dataclass(slots=True)
class Slide:
    place: int  # the number under which it is kept
    name: int  # the number by which notes refer to it
    outline: list[tuple[int, str]] = field(default_factory=list)  # texts that shapes refer to, with their kinds


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    file = Compound(source)
    newer = file.stream(f"{DUAL}/{SLIDES_STREAM}")
    folder = f"{DUAL}/" if newer else ""
    show = Presentation(newer or file.stream(SLIDES_STREAM), file.stream(f"{folder}Current User"))
    slides = show.listed(SLIDES)
    notes = {show.noted(note): note for note in show.listed(NOTES)}
    if not slides:
        raise JobFailure("no_text", "No text found: the presentation has no slides.")
    title = file.title
    for number, slide in enumerate(slides, 1):
        blocks = [f"# {' '.join(text.split())}" if kind in TITLES else text for kind, text in show.texts(slide)]
        blocks.sort(key=lambda block: not block.startswith("# "))
        if slide.name in notes and (
            said := [text for kind, text in show.texts(notes[slide.name]) if kind not in TITLES]
        ):
            blocks.append("Notes: " + "\n".join(said))
        blocks += show.comments(slide)
        text = "\n\n".join(blocks)
        is_hidden = bool(text) and show.is_hidden(slide)
        outcome = Outcome("ok", "the slide is hidden") if is_hidden else Outcome() if text else EMPTY
        title = title or (blocks[0].removeprefix("# ") if text.startswith("# ") else None)
        about = file.metadata if number == 1 else {}
        where = Anchor(slide=number)
        yield Part(f"slide {number}", text, where, outcome, title, about, number, len(slides), hidden=is_hidden)


class Presentation:
    def __init__(self, data: bytes, current: bytes) -> None:
        if not data:
            raise JobFailure("corrupt", "The file holds no presentation of PowerPoint.")
        if current[12:16] == ENCRYPTED:
            raise JobFailure("encrypted", "The presentation is protected with a password.")
        self._data = data
        self._left = MAX_RECORDS
        self._places, self._document = self._saved(
            struct.unpack_from("<I", current, 16)[0] if len(current) >= 20 else 0
        )
        if not self._document:
            raise JobFailure(
                "unsupported_format",
                "It is damaged, or of PowerPoint 95 or older. Save it as PPTX or PDF and add that.",
            )

    def _saved(self, edit: int) -> tuple[dict[int, int], int]:
        """Where everything is kept as it was saved last, and the number of the document."""
        places: dict[int, int] = {}
        document = 0
        seen: set[int] = set()
        while edit and edit not in seen and len(seen) < MAX_EDITS:
            seen.add(edit)
            record = self._record(edit)
            if record is None or record.kind != USER_EDIT or record.end - record.start < 20:
                break
            before, listed, number = struct.unpack_from("<III", self._data, record.start + 8)
            document = document or number
            places = self._listed_places(listed) | places
            edit = before
        return places, document

    def _listed_places(self, at: int) -> dict[int, int]:
        record = self._record(at)
        found: dict[int, int] = {}
        if record is None or record.kind != PLACES:
            return found
        at = record.start
        while at + 4 <= record.end:
            (both,) = struct.unpack_from("<I", self._data, at)
            count = min(both >> 20, (record.end - at - 4) // 4)
            self._spend(count)
            for number in range(count):
                found[(both & 0xFFFFF) + number] = struct.unpack_from("<I", self._data, at + 4 + 4 * number)[0]
            at += 4 + 4 * count
            if not count:
                break
        return found

    def listed(self, kind: int) -> list[Slide]:
        """The slides or the notes, in order, with the texts of their outline."""
        found: list[Slide] = []
        for record in self._within(self._kept(self._document)):
            if record.kind != LIST or record.instance != kind:
                continue
            said = 0
            for inner in self._within(record):
                if inner.kind == SLIDE_PLACE and inner.end - inner.start >= 16:
                    place, _, _, name = struct.unpack_from("<IIiI", self._data, inner.start)
                    found.append(Slide(place, name))
                elif inner.kind == TEXT_KIND and inner.end - inner.start >= 4:
                    (said,) = struct.unpack_from("<I", self._data, inner.start)
                    if found:
                        found[-1].outline.append((said, ""))
                elif inner.kind in (WIDE_TEXT, NARROW_TEXT) and found and found[-1].outline:
                    found[-1].outline[-1] = (said, self._text(inner))
        if len(found) > MAX_SLIDES:
            raise JobFailure("too_complex", f"The presentation has {len(found)} slides.")
        return found

    def texts(self, slide: Slide) -> list[tuple[int, str]]:
        """What the shapes of a slide say, with the kinds of text; what only its outline says comes last."""
        found: list[tuple[int, str]] = []
        met: set[int] = set()
        kind = -1
        for record in self._all(self._kept(slide.place)):
            if record.kind == TEXT_KIND and record.end - record.start >= 4:
                (kind,) = struct.unpack_from("<I", self._data, record.start)
            elif record.kind in (WIDE_TEXT, NARROW_TEXT):
                found.append((kind, self._text(record)))
            elif record.kind == TEXT_REFERENCE and record.end - record.start >= 4:
                (number,) = struct.unpack_from("<i", self._data, record.start)
                if 0 <= number < len(slide.outline) and number not in met:
                    met.add(number)
                    found.append(slide.outline[number])
        found += [one for number, one in enumerate(slide.outline) if number not in met]
        return [(kind, text) for kind, text in found if text not in NUMBERS]

    def comments(self, slide: Slide) -> Iterator[str]:
        for record in self._all(self._kept(slide.place)):
            if record.kind == COMMENT:
                said = {inner.instance: self._text(inner) for inner in self._within(record) if inner.kind == STRING}
                yield f"[{said.get(0, '')}: {said.get(1, '')}]"

    def noted(self, note: Slide) -> int:
        """The slide that notes belong to."""
        for record in self._within(self._kept(note.place)):
            if record.kind == NOTES_OF and record.end - record.start >= 4:
                return int(struct.unpack_from("<I", self._data, record.start)[0])
        return 0

    def is_hidden(self, slide: Slide) -> bool:
        for record in self._within(self._kept(slide.place)):
            if record.kind == SHOW and record.end - record.start >= 12:
                return bool(self._data[record.start + 10] & IS_HIDDEN)
        return False

    def _text(self, record: Record) -> str:
        encoding = "latin-1" if record.kind == NARROW_TEXT else "utf-16-le"
        return tidy(self._data[record.start : record.end].decode(encoding, "replace"))

    def _spend(self, records: int) -> None:
        """Refuse a file that would have the same records read over and over."""
        self._left -= records
        if self._left < 0:
            raise JobFailure("too_complex", f"The presentation has more than {MAX_RECORDS:,} records.")

    def _kept(self, place: int) -> Record | None:
        return self._record(self._places.get(place, -1))

    def _record(self, at: int) -> Record | None:
        if not 0 <= at <= len(self._data) - HEAD.size:
            return None
        both, kind, size = HEAD.unpack_from(self._data, at)
        start = at + HEAD.size
        return Record(kind, both >> 4, both & 0xF, start, min(start + size, len(self._data)))

    def _within(self, holder: Record | None) -> Iterator[Record]:
        """The records that a container holds."""
        is_container = holder and (holder.version == CONTAINER or holder.kind == BLOB)
        at = holder.start if holder and is_container else -1
        while holder and 0 <= at < holder.end and (record := self._record(at)):
            self._spend(1)
            yield record._replace(end=min(record.end, holder.end))
            at = record.end

    def _all(self, holder: Record | None, depth: int = 0) -> Iterator[Record]:
        """The records that a container holds, and those that these hold."""
        for record in self._within(holder):
            yield record
            if depth < MAX_DEPTH:
                yield from self._all(record, depth + 1)
