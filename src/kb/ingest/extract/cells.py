"""Some cells of a sheet, as a reader of the workbook sees them."""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from python_calamine import CalamineError, WorksheetNotFound

from kb.core.errors import JobFailure
from kb.ingest.extract.tools import Source
from kb.ingest.extract.workbook import filled, merged_cells, no_panic, opened, shown

CELL_CHARACTERS = 1000
CUT = "…"


class Window(NamedTuple):
    """Rows and columns, from 0, without the last ones."""

    top: int
    left: int
    bottom: int
    right: int


def window(source: Source, name: str, wanted: Window) -> list[list[str]] | None:
    """The cells of a window, row by row, as far as the sheet goes; None where there is no such sheet."""
    workbook = opened(source)
    if name not in workbook.sheet_names:
        return None
    try:
        with no_panic():
            sheet = workbook.get_sheet_by_name(name)
            left = sheet.start[1] if sheet.start else 0
            merged = merged_cells(sheet)
            numbered = islice(enumerate(sheet.iter_rows()), wanted.top, wanted.bottom)
            rows = [filled([shown(value) for value in row], merged.get(number, ()), left) for number, row in numbered]
    except WorksheetNotFound:
        return []  # a sheet that is a chart has no cells
    except CalamineError as error:
        raise JobFailure("corrupt", f"The sheet cannot be read: {str(error)[:200]}") from None
    return [cut(row, left, wanted) for row in rows]


def cut(row: Sequence[str], left: int, wanted: Window) -> list[str]:
    """The columns of the window; `left` is the first that the row has."""
    columns = range(wanted.left - left, min(wanted.right - left, len(row)))
    texts = [row[column] if column >= 0 else "" for column in columns]
    return [text if len(text) <= CELL_CHARACTERS else text[: CELL_CHARACTERS - 1] + CUT for text in texts]
