"""What one check of the doctor found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    problems: int = 0
    message: str = "All is well."  # else what is wrong, and what to do
    fixed: int = 0


Examination = Callable[[bool], Finding]  # the argument: whether to mend what is wrong


def found(things: Sequence[object], message: str, fixed: int) -> Finding:
    """A finding about each of these things, if there are any."""
    if not things:
        return Finding()
    return Finding(len(things), message.format(n=len(things), first=things[0]), fixed)


def looking(check: Callable[[], Finding]) -> Examination:
    """A check of something that kb cannot mend."""
    return lambda _fix: check()
