"""What to do about files that are not as they were: a pure decision, from what is known and what is there.

A document follows its bytes: where the same bytes are gone from one path and have appeared at another, the file was
moved, and its document keeps id, tags and history. Else the path is the identity: other bytes at a path are a new
version of its document.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Held:
    """A document of the folder whose file is gone, or may have changed."""

    path: str
    hash: str | None
    inode: int
    is_busy: bool = False  # a job still reads these bytes: the document follows when it has ended

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Seen:
    """A file that is new, or may have changed. The hash is None where no document can have its bytes."""

    path: str
    hash: str | None
    inode: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(slots=True)
class Plan:
    """Paths by what is to be done."""

    same: list[str] = field(default_factory=list)  # the bytes are as they were
    moved: dict[str, str] = field(default_factory=dict)  # from the old path to the new one
    changed: list[str] = field(default_factory=list)  # new bytes for the document at this path
    new: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)  # of documents whose file is gone
    displaced: list[str] = field(default_factory=list)  # of documents whose path another one moves to
    later: set[str] = field(default_factory=set)  # paths that wait for a job


File = Held | Seen
# Which of several documents with the same bytes a file was: the same inode first, then the same name, then any.
LIKENESS: tuple[Callable[[File], tuple[object, ...]], ...] = (
    lambda one: (one.hash, one.inode),
    lambda one: (one.hash, one.name),
    lambda one: (one.hash,),
)


def plan(held: Iterable[Held], seen: Iterable[Seen]) -> Plan:
    """Decide for every path; the same input in any order gives the same plan."""
    files = {one.path: one for one in sorted(seen, key=lambda one: one.path)}
    documents = {one.path: one for one in sorted(held, key=lambda one: one.path)}
    done = Plan()
    for path, document in list(documents.items()):
        if path in files and document.hash is not None and files[path].hash == document.hash:
            done.same.append(path)
            del documents[path], files[path]
    done.moved = moves(documents, files)
    back = {to: path for path, to in done.moved.items()}
    put_off(done, documents, back)
    for path, document in documents.items():
        if path in done.moved or path in done.later:
            continue
        if document.is_busy:
            done.later.add(path)
        elif path in back:
            done.displaced.append(path)
        elif path in files:
            done.changed.append(path)
        else:
            done.removed.append(path)
    done.new = [
        path
        for path in files
        if path not in back.keys() | done.later and path not in documents.keys() - done.moved.keys()
    ]
    return done


def moves(documents: dict[str, Held], files: dict[str, Seen]) -> dict[str, str]:
    """From the path of a document to the path at which its bytes have appeared."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for key in LIKENESS:
        alike: defaultdict[tuple[object, ...], deque[str]] = defaultdict(deque)
        for document in documents.values():
            if document.hash is not None and document.path not in found:
                alike[key(document)].append(document.path)
        for file in files.values():
            if file.path not in taken and (candidates := alike.get(key(file))):
                found[candidates.popleft()] = file.path
                taken.add(file.path)
    return found


def put_off(done: Plan, documents: dict[str, Held], back: dict[str, str]) -> None:
    """Put off every move from or to a path that a job still reads, and what these moves depend on."""
    while waiting := [
        (path, to)
        for path, to in done.moved.items()
        if documents[path].is_busy or (to in documents and documents[to].is_busy) or {path, to} & done.later
    ]:
        for path, to in waiting:
            del done.moved[path], back[to]
            done.later |= {path, to}
