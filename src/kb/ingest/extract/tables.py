"""Tables as Markdown rows: the chunker gives every passage of a table its header."""

from collections.abc import Sequence


def cell(text: str) -> str:
    """What stands in a cell, on one line."""
    return " ".join(text.split()).replace("|", "\\|")


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of one width, the first of them the header; rows and columns without any text are left out."""
    kept = [[cell(text) for text in row] for row in rows if any(text.strip() for text in row)]
    if not kept:
        return ""
    width = max(len(row) for row in kept)
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in kept]
    return "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])
