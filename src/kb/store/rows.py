"""What the SQL of this package shares: placeholders, and checks of what is read.

Values read from the database are input: a damaged one raises an error that says what to do.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from kb.core.errors import Conflict, damaged
from kb.core.wire import shape
from kb.store.backend import Row

Value = TypeVar("Value")

# Arrays have 32 bits for every id up to the highest, so at most a gigabyte. A damaged or crafted file may have higher
# ids.
HIGHEST_ID = 2**28 - 1
ALL = 2**62  # a LIMIT that limits nothing


def listed(values: Iterable[Any]) -> tuple[str, dict[str, Any]]:
    """The placeholders for `IN (...)`, and their parameters. A store prepares one statement per number of values.

    Without values it is NULL, which nothing equals: PostgreSQL knows no empty list.
    """
    params = {f"v{number}": value for number, value in enumerate(values)}
    return ", ".join(f":{name}" for name in params) or "NULL", params


def numbers(ids: Iterable[int]) -> str:
    """Whole numbers for `IN (...)`, where they are too many for placeholders."""
    return ", ".join(str(int(id_)) for id_ in ids) or "NULL"


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Raise an error about damage if values of the database are not what they should be."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as wrong:
        raise damaged(f"What the database holds as {what} is damaged ({type(wrong).__name__}).") from wrong


def checked_id(id_: int) -> int:
    """Return a new id; raise Conflict if the index in memory cannot hold it."""
    if not 0 < id_ <= HIGHEST_ID:
        raise Conflict(
            f"The database would give the id {id_}, beyond {HIGHEST_ID}: it is damaged, or all ids are used up. "
            "Nothing was changed. Export everything, and import it into a new data folder."
        )
    return id_


def from_row(kind: type[Value], row: Row, **others: Any) -> Value:
    """A dataclass with the row's columns of the same names as its fields, and with `others`."""
    named = {name: row[name] for name, _ in shape(kind) if name in row}  # type: ignore[arg-type]
    return kind(**named | others)
