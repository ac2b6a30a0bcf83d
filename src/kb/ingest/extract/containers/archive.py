"""ZIP, TAR and files that are merely compressed: the text is the list of the members."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from kb.core.errors import JobFailure
from kb.ingest.extract.containers.entry import Entry
from kb.ingest.extract.containers.tar import tar_entries
from kb.ingest.extract.containers.zip import zip_entries
from kb.ingest.extract.member import MAX_MEMBERS, About, Member, unique
from kb.ingest.extract.part import Outcome, Part
from kb.ingest.extract.tools import Ocr, Source


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    listed = entries(source)
    yield Part("list of members", "\n".join(entry.path for entry in listed if not entry.is_junk))


def members(source: Source) -> Iterator[Member]:
    listed = entries(source)
    taken: dict[str, int] = {}
    for number, entry in enumerate(listed, 1):
        path = unique(entry.path, taken)
        about = About(f"member {path}", path, PurePosixPath(entry.path).name, None, entry.outcome, number, len(listed))
        if path != entry.path and entry.outcome.state == "ok":
            about = replace(about, outcome=Outcome("ok", f"another member has the same name, {entry.path}"))
        yield Member(about, entry.pieces())


def entries(source: Source) -> Sequence[Entry]:
    with source.open() as file:
        is_zip = file.read(4) == b"PK\x03\x04"
    found = zip_entries(source) if is_zip else tar_entries(source)
    if len(found) > MAX_MEMBERS:
        raise JobFailure("too_complex", f"The archive has {len(found):,} members; {MAX_MEMBERS:,} are read at most.")
    return found
