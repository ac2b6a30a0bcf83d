"""Pictures inside a document: what OCR reads in them becomes parts of their own, beside the text that they stand in.

The ledger has an entry for each picture that was read, and one for all others of a part, which says why they were not.
"""

import hashlib
import io
import posixpath
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter

from PIL import Image

from kb.core.errors import JobFailure
from kb.ingest.extract.archive import Archive
from kb.ingest.extract.image import opened, upright
from kb.ingest.extract.part import Outcome, Part
from kb.ingest.extract.tools import Ocr, Reading

MAX_PICTURES = 300  # that are read of one document
MAX_SECONDS = 1200  # that they may take
MAX_UNPACKED = 32_000_000  # pixels; a JPG can be unpacked at a fraction of its size, other formats cannot
MIN_SIDE = 16  # pixels: a line of text is not smaller
MIN_PIXELS = 2500  # an icon has fewer
NARROW = 60  # times as long as wide: a line or a border
MIN_LETTERS = 3  # and digits; fewer are what OCR makes of a line or a circle
READ = ("avif", "bmp", "gif", "jfif", "jpe", "jpeg", "jpg", "png", "tif", "tiff", "webp")

SMALL = Outcome("empty", "too small or narrow to hold words")
REPEATED = Outcome("empty", "read where it is first shown")
WORDLESS = Outcome("empty", "without text")
DAMAGED = Outcome("failed", "cut off or damaged", "corrupt")
TOO_MANY = Outcome("failed", f"beyond the {MAX_PICTURES} that OCR reads of one document", "too_complex")
TOO_LONG = Outcome("failed", f"not read: OCR of those before took {MAX_SECONDS // 60} minutes", "timeout")


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture at its place in a document."""

    member: str  # of the archive
    heading: str | None = None  # that it stands under
    hidden: bool = False  # a reader of the file does not see it


@dataclass
class Pictures:
    """The pictures of one document. Each is read once, however often it is shown."""

    _archive: Archive
    _ocr: Ocr
    _known: set[bytes] = field(default_factory=set)  # hashes of those that were met
    _met: set[str] = field(default_factory=set)  # their members
    _numbers: Counter[str] = field(default_factory=Counter)  # of pictures, by the part that they are on
    _read: int = 0
    _seconds: float = 0.0

    def on(self, part: Part, shown: Sequence[Shown]) -> Iterator[Part]:
        """What the pictures say that a part shows, and an entry for those that say nothing."""
        unread: Counter[Outcome] = Counter()
        of = "" if part.name == "text" else f"{part.name}, "
        alone = part.total == 1  # then the pictures are what takes its time
        for at, one in enumerate(shown, 1):
            found = self._reading(one.member)
            if found.outcome.state != "ocr":
                unread[found.outcome] += 1
                continue
            self._numbers[part.name] += 1
            number = self._numbers[part.name]
            yield Part(
                f"{of}picture {number}",
                found.text,
                replace(part.anchor, heading=one.heading, picture=number),
                found.outcome,
                number=at if alone else part.number,
                total=len(shown) if alone else part.total,
                hidden=part.hidden or one.hidden,
            )
        if unread:
            yield replace(part, name=f"{of}pictures", text="", outcome=summary(unread), title=None, metadata={})

    def beside(self, parts: Iterable[Part], shown: Mapping[str, Sequence[Shown]]) -> Iterator[Part]:
        """The parts of a workbook, after each sheet its pictures."""
        for _, pieces in groupby(parts, key=attrgetter("name")):
            for part in pieces:
                yield part
            yield from self.on(part, shown.get(part.anchor.sheet or "", ()))

    def elsewhere(self, members: Iterable[str]) -> Iterator[Part]:
        """An entry for those of the file's pictures that no part shows: of masters, of backgrounds, left over."""
        # A drawing is kept beside the picture that is shown for it.
        rest = [name for name in members if name.lower() not in self._met and kind_of(name) != "svg"]
        if rest:
            reason = f"{counted(len(rest))}: of backgrounds and layouts, or shown nowhere; not read"
            yield Part("media", "", outcome=Outcome("empty", reason))

    def _reading(self, member: str) -> Reading:
        """The text of a picture, or why there is none."""
        picture = self._unpacked(member)
        if isinstance(picture, Outcome):
            return Reading("", picture)
        self._read += 1
        started = time.monotonic()
        found = self._ocr.read(picture)
        self._seconds += time.monotonic() - started
        has_words = sum(map(str.isalnum, found.text)) >= MIN_LETTERS
        return found if has_words or found.outcome.state == "failed" else Reading("", WORDLESS)

    def _unpacked(self, member: str) -> Image.Image | Outcome:
        """The picture in gray, or why it is not read. What is wrong with it never fails the document."""
        self._met.add(member.lower())
        try:
            data = self._archive.read(member)
            key = hashlib.sha256(data).digest()
            if key in self._known:
                return REPEATED
            self._known.add(key)
            if self._read >= MAX_PICTURES or self._seconds > MAX_SECONDS:
                return TOO_MANY if self._read >= MAX_PICTURES else TOO_LONG
            return unpacked(data)
        except JobFailure as failure:
            return refused(member, failure)
        except MemoryError:
            return Outcome("failed", "too large to be unpacked", "out_of_memory")
        except Exception:  # noqa: BLE001 - a decoder that stumbles says nothing about the rest of the document
            return DAMAGED


def unpacked(data: bytes) -> Image.Image | Outcome:
    with opened(io.BytesIO(data)) as picture:
        pixels = picture.width * picture.height
        if min(picture.size) < max(MIN_SIDE, max(picture.size) / NARROW) or pixels < MIN_PIXELS:
            return SMALL
        if pixels > MAX_UNPACKED and picture.format != "JPEG":
            raise JobFailure("too_complex", f"The picture has {picture.width} × {picture.height} pixels.")
        return upright(picture)


def refused(member: str, failure: JobFailure) -> Outcome:
    kind = kind_of(member)
    if failure.code == "corrupt" and kind not in READ:
        form = f"the format {kind.upper()}" if kind else "an unknown format"
        return Outcome("failed", f"of {form}, which is not read", "unsupported_format")
    if failure.code == "corrupt":
        return DAMAGED
    return Outcome("failed", f"not read: {failure.message.rstrip('.')}", failure.code)


def kind_of(member: str) -> str:
    return posixpath.splitext(member)[1].lstrip(".").lower()


def summary(unread: Counter[Outcome]) -> Outcome:
    """One outcome for several: failed, if one of them is."""
    reason = "; ".join(f"{counted(count)}: {one.reason}" for one, count in unread.items())
    return next((replace(one, reason=reason) for one in unread if one.state == "failed"), Outcome("empty", reason))


def counted(pictures: int) -> str:
    return "1 picture" if pictures == 1 else f"{pictures} pictures"


@dataclass
class HeadingPath:
    """The headings in force while a text is gone through."""

    _entered: list[tuple[int, str]] = field(default_factory=list)  # level and title

    def enter(self, level: int, title: str) -> None:
        self._entered = [*(one for one in self._entered if one[0] < level), (level, title)]

    def __str__(self) -> str:
        return " > ".join(title for _, title in self._entered)
