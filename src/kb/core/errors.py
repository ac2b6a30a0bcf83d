"""The tree of errors.

    KBError               internal             500  exit 1
    ├── InvalidRequest    invalid_request      422  exit 2
    │   └── NotANote      not_a_note           422  exit 2
    ├── Unauthorized      unauthorized         401  exit 7
    ├── Forbidden         forbidden            403  exit 7
    ├── NotFound          not_found            404  exit 3
    ├── MethodNotAllowed  method_not_allowed   405  exit 2
    ├── Conflict          conflict             409  exit 4
    ├── UnsupportedFormat unsupported_format   415  exit 5
    ├── TooLarge          file_too_large       413  exit 5
    ├── Unavailable       unavailable          503  exit 6  retryable
    └── StorageFull       storage_full         507  exit 6  retryable

A message says what was wrong and what to do next. Each surface (REST, CLI, MCP) has one handler that
translates these; nothing else in the code knows HTTP statuses or exit codes.
"""

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from kb.core.values import FailureCode  # creating the values costs what `kb search` cannot spare


class KBError(Exception):
    """A failure that has a code. Raised as itself only for what should never happen."""

    code: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, /, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def body(self) -> dict[str, Any]:
        """The one error shape of every surface."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "retryable": self.retryable,
                "details": self.details,
            }
        }


class InvalidRequest(KBError):
    """What was sent cannot be understood or is out of bounds."""

    code, http_status, exit_code = "invalid_request", 422, 2


class NotANote(InvalidRequest):
    """Only notes can be rewritten in place."""

    code = "not_a_note"


class Unauthorized(KBError):
    """The key is missing or wrong."""

    code, http_status, exit_code = "unauthorized", 401, 7


class Forbidden(KBError):
    """A foreign Host, or a web page of another address: refused with a key or without."""

    code, http_status, exit_code = "forbidden", 403, 7


class NotFound(KBError):
    """There is no such thing, or it is gone."""

    code, http_status, exit_code = "not_found", 404, 3


class MethodNotAllowed(KBError):
    """The route exists, but not with this method."""

    code, http_status, exit_code = "method_not_allowed", 405, 2


class Conflict(KBError):
    """The present state does not allow it, or another change came first."""

    code, http_status, exit_code = "conflict", 409, 4


class UnsupportedFormat(KBError):
    """No extractor reads this kind of file."""

    code, http_status, exit_code = "unsupported_format", 415, 5


class TooLarge(KBError):
    """More bytes than the limit allows."""

    code, http_status, exit_code = "file_too_large", 413, 5


class Unavailable(KBError):
    """Not now: engine unreachable, queue full, database busy."""

    code, http_status, exit_code, retryable = "unavailable", 503, 6, True


class StorageFull(KBError):
    """The disk has no room, or may not be written."""

    code, http_status, exit_code, retryable = "storage_full", 507, 6, True


def damaged(what: str) -> Conflict:
    """The error for a database that is damaged; `what` says where."""
    return Conflict(
        f"{what} `kb doctor` names what is damaged, `kb doctor --fix` mends what can be mended; else restore a backup.",
        damaged=True,
    )


def is_damage(error: BaseException) -> bool:
    """Whether the database itself is damaged: trying again does not help, mending does."""
    return isinstance(error, KBError) and bool(error.details.get("damaged"))


def every_error() -> list[type[KBError]]:
    """Every class of the tree, the root first."""
    found: list[type[KBError]] = [KBError]
    for cls in found:
        found.extend(cls.__subclasses__())
    return found


def from_body(body: dict[str, Any]) -> KBError:
    """The error that an answer of the engine carries."""
    error = body.get("error") or {}
    cls = next((cls for cls in every_error() if cls.code == error.get("code")), KBError)
    return cls(str(error.get("message") or "the engine gave no reason"), **(error.get("details") or {}))


class JobCancelled(Exception):
    """The job stopped because it was cancelled."""


class JobSlow(Exception):
    """The job takes too long for its lane: it continues in the lane of large jobs."""


class JobInterrupted(Exception):
    """The engine is stopping; the job goes back into the queue."""


class JobLost(Exception):
    """Another worker runs the job by now, or it has ended: what this one did counts no more."""


class JobFailure(Exception):
    """How a job ends when its content cannot be read. Not an answer to a request: it is recorded in the job."""

    def __init__(self, code: "FailureCode", message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
