"""The parts of a document, found again in its text: pages survive a new index."""

from base64 import b64encode
from dataclasses import replace
from random import Random

from kb.core.values import Anchor, Chunk
from kb.ingest.recut import left_out, parts_of

TEXT = "First page.\n\nStill the first.\n\nSecond page."


def chunk(text: str, page: int | None) -> Chunk:
    start = TEXT.index(text)
    return Chunk(id=start, index=start, text=text, anchor=Anchor(page=page, start=start, end=start + len(text)))


def test_neighbouring_chunks_of_one_page_are_one_part() -> None:
    old = [chunk("First page.", 1), chunk("Still the first.", 1), chunk("Second page.", 2)]
    parts = list(parts_of(TEXT, old))
    assert [(start, part.anchor.page) for start, part in parts] == [(0, 1), (TEXT.index("Second"), 2)]
    assert "".join(part.text for _, part in parts) == TEXT


def test_a_text_without_pages_is_one_part() -> None:
    ((start, part),) = parts_of(TEXT, [chunk("First page.", None), chunk("Second page.", None)])
    assert (start, part.text, part.anchor) == (0, TEXT, Anchor())


def test_definitions_are_no_parts() -> None:
    old = [chunk("First page.", None), chunk("Second page.", None)]
    named = [replace(one, anchor=replace(one.anchor, symbol=f"f{n}", heading=f"f{n}")) for n, one in enumerate(old)]
    ((_, part),) = parts_of(TEXT, named)
    assert (part.text, part.anchor) == (TEXT, Anchor())


def test_a_text_that_lost_every_chunk_is_one_part() -> None:
    ((start, part),) = parts_of(TEXT, [])
    assert (start, part.text) == (0, TEXT)


def test_encoded_bytes_stay_left_out_and_lost_passages_come_back() -> None:
    blob = b64encode(Random(5).randbytes(3000)).decode()
    text = f"Before. {blob} After. {'Lost prose. ' * 100}"

    def of(piece: str) -> Chunk:
        start = text.index(piece)
        return Chunk(id=1, index=1, text=piece, anchor=Anchor(start=start, end=start + len(piece)))

    start = text.index(blob)
    assert left_out(text, [of("Before."), of("After.")]) == [(start, start + len(blob))]
    assert left_out(text, []) == [(start, start + len(blob))]
    assert left_out(text, [of("Before."), of(blob), of("After.")]) == []  # indexed before such bytes were left out
