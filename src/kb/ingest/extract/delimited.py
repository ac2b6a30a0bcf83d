"""CSV and TSV: the rows of a table in pieces of a few, each with its numbers and the names of the columns.

What is not a table throughout is not read as one: a column that slipped would put values under wrong names.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from kb.core.values import Anchor
from kb.ingest.extract.part import Outcome, Part
from kb.ingest.extract.rows import PIECE_CHARACTERS, grouped
from kb.ingest.extract.tidy import one_line
from kb.ingest.extract.unstructured import Unstructured
from kb.ingest.extract.workbook import CELL, HEADER_CHARACTERS, Row, header_of

LINE = re.compile(r"[^\n]*\n|[^\n]+")
# Signs between columns, and how the ledger calls them. Where several fit, a comma is more often a sign of a number.
SIGNS = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}
SAMPLE = 200  # rows that decide about the sign


@dataclass(frozen=True, slots=True)
class Form:
    """How a table is written."""

    sign: str
    is_quoted: bool  # a cell may stand in quotation marks
    columns: int


def table_of_commas(text: str) -> Iterator[Part]:
    return table_parts(text, tuple(SIGNS))


def table_of_tabs(text: str) -> Iterator[Part]:
    return table_parts(text, ("\t",))


def table_parts(text: str, signs: Iterable[str]) -> Iterator[Part]:
    """The parts of a table. Raises Unstructured if the text is none."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    form = form_of(text, signs)
    for _ in rows(text, form):  # all of them must fit before any is read
        pass
    return pieces(text, form)


def form_of(text: str, signs: Iterable[str]) -> Form:
    """The form in which all the first rows have the same number of columns."""
    reasons: list[str] = []
    for sign in signs:
        for is_quoted in (True, False):
            try:
                records = cells(text, sign, is_quoted=is_quoted)
                first = next((record for record in records if record), [])
                form = Form(sign, is_quoted, len(first))
                if form.columns > 1:
                    for _ in islice(rows(text, form), SAMPLE):
                        pass
                    return form
            except Unstructured as why:
                reasons.append(str(why))
    raise Unstructured(reasons[0] if reasons else "it has one column only")


def rows(text: str, form: Form) -> Iterator[Row]:
    """The rows that are not empty, with their numbers."""
    for number, record in enumerate(cells(text, form.sign, is_quoted=form.is_quoted), 1):
        if len(record) == form.columns + 1 and not record[-1]:
            record.pop()  # a sign at the end of a line
        if record and len(record) != form.columns:
            count = "1 cell" if len(record) == 1 else f"{len(record)} cells"
            raise Unstructured(f"row {number} has {count}, not {form.columns} as the first")
        if record:
            yield number, [one_line(cell) for cell in record]


def cells(text: str, sign: str, *, is_quoted: bool) -> Iterator[list[str]]:
    lines = (found[0] for found in LINE.finditer(text))
    form: Any = {"delimiter": sign, "quoting": csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE}
    reader = csv.reader(lines, skipinitialspace=sign != "\t", strict=True, **form)
    try:
        yield from reader
    except csv.Error as error:
        raise Unstructured(f"line {reader.line_num} is not written as a table: {error}") from None


def pieces(text: str, form: Form) -> Iterator[Part]:
    first, texts = next(rows(text, form))
    names = names_in(texts)
    header = CELL.join(names)[:HEADER_CHARACTERS]
    outcome = Outcome("ok", described(form, has_names=bool(names)))
    said = ((number, row_text(names if number > first else [], texts)) for number, texts in rows(text, form))
    for numbers, piece in grouped(said, "\n"):
        yield Part("text", piece, Anchor(rows=numbers, heading=header or None), outcome)


def row_text(names: list[str], texts: list[str]) -> str:
    """The cells of a row; each with its name where the header is too long for a heading, or the row for a passage."""
    text = CELL.join(texts)
    if not names or (len(CELL.join(names)) <= HEADER_CHARACTERS and len(text) <= PIECE_CHARACTERS):
        return text
    return CELL.join(f"{name}: {cell}" for name, cell in zip(names, texts, strict=True) if cell)


def names_in(texts: list[str]) -> list[str]:
    """The names of the columns, if the first row has one for each of them, and no two alike."""
    return texts if header_of(texts) and all(texts) and len(set(texts)) == len(texts) else []


def described(form: Form, *, has_names: bool) -> str:
    names = "named by the first row" if has_names else "without names"
    return f"{form.columns} columns, {names}, separated by {SIGNS[form.sign]}"
