"""What a committed write changed, as those who follow are told."""

from typing import Literal, NamedTuple


class Change(NamedTuple):
    kind: Literal["job", "document", "reset"]  # reset: anything may have changed
    id: str | int | None
    action: (
        str  # of a job its new status, "progress" or "cancelling"; of a document "added", "updated", "tags", "deleted"
    )


RESET = Change("reset", None, "reset")
