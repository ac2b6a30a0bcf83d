"""The sheets of any workbook in pieces of a few rows, each with its range of cells and the header of its table."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from functools import partial
from itertools import chain, groupby
from typing import Any

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
    WorksheetNotFound,
)

from kb.core.errors import JobFailure
from kb.core.types import Json
from kb.core.values import Anchor
from kb.ingest.extract.columns import column_name
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.tidy import one_line
from kb.ingest.extract.tools import Source

PANIC = "PanicException"  # what a library written in Rust raises when it meets what it did not expect
PIECE_CHARACTERS = 1500  # a few passages: a citation names the cells that it is about
MAX_MERGED = 10_000  # ranges
HEADER_CHARACTERS = 200
HEADING = " > "  # between the parts of a heading path
CELL = " | "

Row = tuple[int, list[str]]  # its number, from 1, and the texts of its cells
Piece = tuple[str | None, str]  # the heading that it stands under, and its text
Remarks = Mapping[str, Sequence[Piece]]  # what is said beside the cells, by sheet


def sheets(source: Source, title: str | None, metadata: Json, remarks: Remarks) -> Iterator[Part]:
    """The parts of a workbook: its cells, then what is said beside them."""
    workbook = opened(source)
    total = len(workbook.sheet_names)
    visible = {sheet.name for sheet in workbook.sheets_metadata if sheet.visible == SheetVisibleEnum.Visible}
    for number, name in enumerate(workbook.sheet_names, 1):
        about = partial(Part, f"sheet {name}", title=title, metadata=metadata, number=number, total=total)
        outcome = Outcome() if name in visible else Outcome("ok", "the sheet is hidden")
        found = False
        try:
            for heading, text in chain(without_panics(cells(workbook, name)), remarks.get(name, ())):
                # The sheet's name is searched like a heading, and opens its text.
                path = HEADING.join(filter(None, (name, heading)))
                told = text if found else f"{name}\n{text}"
                yield about(told, Anchor(sheet=name, heading=path), outcome, hidden=name not in visible)
                found = True
        except (CalamineError, OSError) as error:
            reason = f"the sheet cannot be read: {str(error)[:200]}"
            yield about("", Anchor(sheet=name), Outcome("failed", reason, "corrupt"))
        else:
            if not found:
                yield about("", Anchor(sheet=name), EMPTY)


def opened(source: Source) -> CalamineWorkbook:
    try:
        with no_panic():
            return CalamineWorkbook.from_filelike(source.open())
    except PasswordError:
        raise JobFailure("encrypted", "The workbook is protected with a password.") from None
    except CalamineError as error:
        raise JobFailure("corrupt", f"The workbook cannot be read: {str(error)[:200]}") from None


@contextmanager
def no_panic() -> Iterator[None]:
    """Raise a panic of the library as an error of it: what it cannot read is damaged."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != PANIC:
            raise
        raise CalamineError(str(error)) from None


def without_panics(pieces: Iterator[Piece]) -> Iterator[Piece]:
    while True:
        with no_panic():
            piece = next(pieces, None)
        if piece is None:
            return
        yield piece


def cells(workbook: CalamineWorkbook, name: str) -> Iterator[Piece]:
    """The cells of a sheet, table by table. Empty rows separate tables."""
    try:
        sheet = workbook.get_sheet_by_name(name)
    except WorksheetNotFound:
        kinds = {about.name: about.typ for about in workbook.sheets_metadata}
        if kinds.get(name) == SheetTypeEnum.WorkSheet:
            raise
        return  # a sheet that is a chart has no cells
    left = sheet.start[1] if sheet.start else 0
    merged = merged_cells(sheet)
    rows = (
        (number, filled([shown(value) for value in row], merged.get(number - 1, ()), left))
        for number, row in enumerate(sheet.iter_rows(), 1)
    )
    for has_text, table in groupby(rows, key=lambda row: any(row[1])):
        if has_text:
            yield from table_pieces(table, left)


def merged_cells(sheet: CalamineSheet) -> dict[int, list[tuple[int, int]]]:
    """For every row, the first and last columns that are merged into one."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (top, first), (_, last) in (sheet.merged_cell_ranges or ())[:MAX_MERGED]:
        if first < last:
            found[top].append((first, last))
    return found


def filled(texts: list[str], merged: Iterable[tuple[int, int]], left: int) -> list[str]:
    """A row with the value of merged cells in every column that they cover, so that it can be read alone."""
    for first, last in merged if sum(map(bool, texts)) > 1 else ():  # alone, it is a title
        if 0 <= first - left < len(texts):
            for column in range(first - left + 1, min(last - left + 1, len(texts))):
                texts[column] = texts[column] or texts[first - left]
    return texts


def table_pieces(rows: Iterable[Row], left: int) -> Iterator[Piece]:
    header: str | None = None
    piece: list[Row] = []
    for row in rows:
        if header is None:
            header = header_of(row[1])
        piece.append(row)
        if sum(len(cell) for _, texts in piece for cell in texts) > PIECE_CHARACTERS:
            yield piece_of(piece, left, header)
            piece = []
    if piece:
        yield piece_of(piece, left, header or "")


def piece_of(rows: list[Row], left: int, header: str) -> Piece:
    used = [column for _, texts in rows for column, text in enumerate(texts) if text]
    first, last = min(used), max(used)
    where = f"{column_name(left + first)}{rows[0][0]}:{column_name(left + last)}{rows[-1][0]}"
    text = "\n".join(CELL.join(texts[first : last + 1]).strip(CELL) for _, texts in rows)
    return HEADING.join(filter(None, (where, header))), text


def header_of(texts: list[str]) -> str:
    """The names of the columns, if a table's first row looks like names."""
    names = [text for text in texts if text]
    if len(names) < 2 or any(name[0].isdigit() or name[0] in "-+" for name in names):
        return ""
    return CELL.join(names)[:HEADER_CHARACTERS]


def shown(value: Any) -> str:
    """A cell as a reader would see it, numbers without noise."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, datetime):
        return value.isoformat(" ") if value.time() != datetime.min.time() else value.date().isoformat()
    return value.isoformat() if isinstance(value, date) else str(value)
