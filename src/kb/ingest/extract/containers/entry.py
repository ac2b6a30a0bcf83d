"""One entry of an archive, before anything of it is unpacked: its path, and whether it is read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO

from kb.core.errors import JobFailure
from kb.ingest.extract.encoding import MANY_BYTES, ranked, strictly
from kb.ingest.extract.member import PIECE, skipped
from kb.ingest.extract.part import Outcome

CYRILLIC = ("cp866", "cp1251", "koi8-r", "koi8-u")
LONGEST = 1000  # characters of a path
JUNK = skipped("left out: it belongs to a file system and has no content")
JUNK_NAMES = (".DS_Store", "Thumbs.db", "desktop.ini")


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    outcome: Outcome
    opened: Callable[[], IO[bytes]]

    @property
    def is_junk(self) -> bool:
        return self.outcome == JUNK

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the member; a failure says what is wrong with it."""
        if self.outcome.state != "ok":
            return
        try:
            with self.opened() as file:
                while piece := file.read(PIECE):
                    yield piece
        except JobFailure:
            raise
        except Exception as error:  # noqa: BLE001 - of several libraries, each with errors of its own
            raise JobFailure("corrupt", f"It is damaged, or packed in a way that is not read: {error}") from None


def outcome_of(path: str) -> Outcome:
    """Whether a member with this path is read."""
    steps = path.split("/")
    if steps[0] == "__MACOSX" or steps[-1] in JUNK_NAMES or steps[-1].startswith("._"):
        return JUNK
    if path.startswith("/") or path[1:3] == ":/" or ".." in steps:
        return Outcome("failed", "its path leads out of the archive; nothing of it was read")
    if len(path) > LONGEST:
        return Outcome("failed", f"its path has more than {LONGEST} characters")
    return Outcome()


def shown(path: str) -> str:
    """A path that can be shown and stored: without control characters, and not too long."""
    plain = "".join(character if character.isprintable() else "\ufffd" for character in path)
    return plain[: LONGEST + 1].rstrip("/") or "\ufffd"


def decoded_names(names: Sequence[bytes], otherwise: str) -> list[str]:
    """Names as text: UTF-8, else what all of them together look like, else what the format says."""
    foreign = [name for name in names if strictly(name, "utf-8") is None]
    best = next(iter(ranked(b"\n".join(foreign))), "") if foreign else ""
    if best not in (*MANY_BYTES, *CYRILLIC) or any(strictly(name, best) is None for name in foreign):
        best = otherwise
    return [strictly(name, "utf-8") or name.decode(best, "replace") for name in names]
