"""What the database holds is input: a value that cannot be one becomes an error that says what to do, not a crash."""

from collections.abc import Iterator
from contextlib import contextmanager

from kb.core.errors import Conflict, damaged

# Arrays have an entry of 32 bits for every id up to the highest: with these, at most a gigabyte. A damaged or crafted
# file may have higher ones.
HIGHEST_ID = 2**28 - 1


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Inside, values of the database are taken for what they should be."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as wrong:
        raise damaged(f"What the database holds as {what} is damaged ({type(wrong).__name__}).") from wrong


def checked_id(id_: int) -> int:
    """The id of something new, if the index in memory can hold it."""
    if not 0 < id_ <= HIGHEST_ID:
        raise Conflict(
            f"The database would give the id {id_}, beyond {HIGHEST_ID}: it is damaged, or all ids are used up. "
            "Nothing was changed. Export everything, and import it into a new data folder."
        )
    return id_
