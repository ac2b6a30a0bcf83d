"""Rows in pieces of about a passage each, so that a citation names the rows that it is about."""

from collections.abc import Iterable, Iterator

PIECE_CHARACTERS = 600


def grouped(rows: Iterable[tuple[int, str]], between: str) -> Iterator[tuple[str, str]]:
    """Neighbouring rows, given as numbers and texts: which they are ("12-40"), and their texts joined."""
    piece: list[str] = []
    size = first = last = 0
    for number, text in rows:
        if piece and size + len(text) > PIECE_CHARACTERS:
            yield f"{first}-{last}", between.join(piece)
            piece, size = [], 0
        first, last = first if piece else number, number
        piece.append(text)
        size += len(text)
    if piece:
        yield f"{first}-{last}", between.join(piece)
