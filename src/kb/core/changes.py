"""What a committed write changed, as listeners are told."""

from typing import Literal, NamedTuple


class Change(NamedTuple):
    kind: Literal["job", "document", "reset"]  # reset: anything may have changed
    id: str | int | None
    # Of a job its new status, "progress" or "cancelling"; of a document "added", "updated", "tags", "deleted" (into the
    # trash, or for good), "restored" from the trash or "purged" from it.
    action: str


RESET = Change("reset", None, "reset")
