"""MBOX: the messages of a mailbox, one part each; each attachment is a document of its own."""

import re
from collections.abc import Iterator
from dataclasses import replace

from kb.core.errors import JobFailure
from kb.core.values import Anchor
from kb.ingest.extract.containers import eml
from kb.ingest.extract.detect import narrow
from kb.ingest.extract.member import Member
from kb.ingest.extract.part import Outcome, Part
from kb.ingest.extract.tools import Ocr, Source

MAX_MESSAGES = 100_000
# A message begins behind a blank line. A line of its text that would look like this has a ">" before it.
# One without any headers is told by the date as programs write it there.
DATED = rb"From \S+ +\w{3} \w{3} +\d+ \d\d:\d\d(?::\d\d)?(?: \S+)? \d{4}[ \t]*\r?\n(?=\r?\n)"
FIRST_LINE = re.compile(
    rb"(?:\A\s*|(?<=\n\n)|(?<=\n\r\n))(?:From [^\n]*\d{4}[^\n]*\n(?=[\w-]+:|>?From )|" + DATED + rb")"
)
QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    found = messages(source)
    for number, data in enumerate(found, 1):
        name = f"message {number}"
        try:
            made = list(eml.letter_of(data).parts(name))
        except (JobFailure, RecursionError) as failure:
            reason = failure.message if isinstance(failure, JobFailure) else "It is nested too deeply to be read."
            made = [Part(name, "", Anchor(), Outcome("failed", reason))]
        for part in made:
            yield replace(part, title=None, metadata={}, number=number, total=len(found))


def members(source: Source) -> Iterator[Member]:
    """The attachments of all messages. Progress is told by messages: how many attachments come is not known."""
    found = messages(source)
    taken: dict[str, int] = {}
    for number, data in enumerate(found, 1):
        try:
            attached = list(eml.letter_of(data).members(f"message {number}/", taken))
        except (JobFailure, RecursionError):
            continue  # the ledger has it as a part
        for member in attached:
            yield replace(member, about=replace(member.about, number=number, total=len(found)))


def messages(source: Source) -> list[bytes]:
    data = narrow(source.read_bytes())
    edges = [(found.start(), found.end()) for found in FIRST_LINE.finditer(data)]
    if not edges:
        raise JobFailure("corrupt", "The mailbox holds no message.")
    if len(edges) > MAX_MESSAGES:
        raise JobFailure("too_complex", f"The mailbox has {len(edges):,} messages; {MAX_MESSAGES:,} are read at most.")
    ends = [*(start for start, _ in edges[1:]), len(data)]
    return [QUOTED.sub(rb"\1", data[start:end]) for (_, start), end in zip(edges, ends, strict=True)]
