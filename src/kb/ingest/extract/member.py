"""A file inside of a file: what every reader of archives and mails yields beside the parts."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from kb.core.errors import JobFailure
from kb.core.types import Json
from kb.ingest.extract.part import Outcome

PIECE = 2**18  # bytes of a member that are handed over at once

# What a file may hold, counted over everything that is inside of it. What a file says of itself can lie: the bytes
# that come out are counted, too.
MAX_MEMBERS = 10_000
MAX_UNPACKED = 2**30  # bytes
MAX_RATIO = 200
RATIO_FROM = 10 * 2**20  # bytes: a small file may be all white space


@dataclass(frozen=True, slots=True)
class About:
    """What is known of a member before it is read."""

    name: str  # as the ledger shows it: "member a/b.txt", "attachment b.pdf"
    path: str  # of which its container has only one
    filename: str
    message: str | None = None  # the mail that brought it: date, sender, subject
    outcome: Outcome = Outcome()  # another state than ok: it is not read, and why
    number: int = 1  # which of `total` members this is
    total: int = 1

    def told(self) -> Json:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Member:
    about: About
    pieces: Iterable[bytes] = ()  # its bytes; raises when they cannot be read


def skipped(reason: str) -> Outcome:
    """The outcome of a member that is left out on purpose."""
    return Outcome("empty", reason)


def in_pieces(data: bytes) -> Iterable[bytes]:
    return (data[at : at + PIECE] for at in range(0, len(data), PIECE))


def check_unpacked(packed: int, unpacked: int) -> None:
    """Refuse a file of `packed` bytes that would become far larger."""
    if unpacked > MAX_UNPACKED or unpacked > max(RATIO_FROM, MAX_RATIO * packed):
        raise JobFailure(
            "too_complex", f"A file of {packed // 1024} KB would unpack to more than {unpacked // 2**20} MB."
        )


def unique(path: str, taken: dict[str, int]) -> str:
    """The path, with a number if it is taken; `taken` has the last number of each."""
    found = path
    while found in taken:
        taken[path] += 1
        found = f"{path} ({taken[path]})"
    taken[found] = 1
    return found
