"""Values as plain JSON data. A field made with `absent()` is left out while it is None; all others are always there."""

from dataclasses import field, fields
from functools import cache
from typing import Any, TypeVar

Value = TypeVar("Value")
PLAIN = frozenset({str, int, float, bool, type(None)})


def absent() -> Any:
    """Declare a field that `wire` leaves out while it is None."""
    return field(default=None, metadata={"absent": True})


def made(kind: type[Value], held: dict[str, Any]) -> Value:
    """Make a dataclass without slots from a dict of all its fields, which it keeps as its own.

    The `__init__` of a frozen dataclass sets each field through a call, which takes seven times as long.
    """
    value = object.__new__(kind)
    object.__setattr__(value, "__dict__", held)
    return value


def wire(value: Any) -> Any:
    """Plain JSON data: a dataclass becomes an object without its absent fields."""
    kind: Any = type(value)
    if kind in PLAIN:
        return value
    if kind is list or kind is tuple:
        return [wire(item) for item in value]
    if kind is dict:
        return {key: wire(item) for key, item in value.items()}
    plain = {}
    for name, may_be_absent in shape(kind):
        item = getattr(value, name)
        if type(item) not in PLAIN:  # most fields are plain, and a call costs time
            plain[name] = wire(item)
        elif item is not None or not may_be_absent:
            plain[name] = item
    return plain


@cache
def shape(kind: type) -> tuple[tuple[str, bool], ...]:
    """The names of the fields of a dataclass, and whether each may be absent."""
    return tuple((f.name, bool(f.metadata.get("absent"))) for f in fields(kind))
