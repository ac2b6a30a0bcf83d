"""Cut the stored text of a document again: its original file is not read.

The definitions in a program are found once more in its text, by a process of the sandbox.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

from kb.core.invisible import tag_characters
from kb.core.types import Interrupt
from kb.core.values import Anchor, Chunk, DocType
from kb.ingest.chunking.chunker import Kind
from kb.ingest.extract import FORMATS, Part
from kb.ingest.extract.encoded import LONG, encoded_spans
from kb.ingest.prepare import PlacedPassages, Preparer
from kb.ingest.sandbox.sandbox import Sandbox


def text_passages(
    preparer: Preparer,
    sandbox: Sandbox,
    doc_type: DocType,
    filename: str | None,
    title: str,
    text: str,
    old: Sequence[Chunk],
    interrupt: Interrupt = lambda: None,
) -> Iterator[PlacedPassages]:
    """The passages of each part of a stored text; `old` are the chunks that the document has."""
    kind: Kind = "markdown" if doc_type == "note" else FORMATS[doc_type].kind
    of_text = [chunk for chunk in old if not chunk.anchor.metadata]
    skipped = left_out(text, of_text)
    symbols = sandbox.symbols(filename or "", text, interrupt) if kind == "code" else []
    for offset, part in parts_of(text, of_text, headed=kind == "text"):
        end = offset + len(part.text)
        encoded = [(max(a, offset) - offset, min(b, end) - offset) for a, b in skipped if a < end and b > offset]
        within = [(a - offset, b - offset, name) for a, b, name in symbols if offset <= a and b <= end]
        yield preparer.passages(replace(part, encoded=encoded, symbols=within), kind, title, offset, interrupt)


def left_out(text: str, old: Sequence[Chunk]) -> list[tuple[int, int]]:
    """Encoded bytes that no chunk holds, as the ledger says: those that chunks hold stay in them."""
    spans = [(chunk.anchor.start or 0, chunk.anchor.end or 0) for chunk in old]
    gaps = zip([0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)], strict=True)
    return [
        (start + first, start + last)
        for start, end in gaps
        if end - start >= LONG
        for first, last in encoded_spans(text[start:end])
    ]


def parts_of(text: str, old: Sequence[Chunk], *, headed: bool = False) -> Iterator[tuple[int, Part]]:
    """The parts that a text was joined from, with their offsets: no chunk crosses a part.

    With `headed`, the chunks' headings belong to the parts (a bookmark, a range of cells); else to the text. Those of
    pictures always belong to the part.
    """

    def part_of(chunk: Chunk) -> Anchor:
        kept = headed or chunk.anchor.picture is not None
        heading = chunk.anchor.heading if kept else None
        return replace(chunk.anchor, start=None, end=None, heading=heading, symbol=None)

    anchors = [((part_of(c), bool(c.hidden) and not tag_characters(c.text)), c) for c in old]
    groups = [
        (anchor, min(c.anchor.start or 0 for _, c in group)) for anchor, group in groupby(anchors, key=itemgetter(0))
    ]
    if not groups:  # all chunks were lost: only the text is known
        groups = [((Anchor(), False), 0)]
    starts = [0, *(start for _, start in groups[1:])]
    for ((anchor, hidden), _), start, end in zip(groups, starts, [*starts[1:], len(text)], strict=True):
        yield start, Part("part", text[start:end], anchor, hidden=hidden)
