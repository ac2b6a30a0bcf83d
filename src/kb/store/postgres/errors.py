"""PostgreSQL's errors as ours. Nothing beyond this package sees one of psycopg's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import psycopg
from psycopg import errors

from kb.core.errors import Conflict, InvalidRequest, KBError, StorageFull, Unavailable, damaged

FULL = (errors.DiskFull, errors.OutOfMemory, errors.ProgramLimitExceeded)
DAMAGED = (errors.DataCorrupted, errors.IndexCorrupted)
BUSY = (
    errors.LockNotAvailable,
    errors.QueryCanceled,
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.TooManyConnections,
    errors.IdleInTransactionSessionTimeout,  # this engine stood still
    errors.ReadOnlySqlTransaction,  # it became a standby
)
REFUSED = (errors.InvalidPassword, errors.InvalidAuthorizationSpecification, errors.InvalidCatalogName)


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise_ours(error)


def raise_ours(error: psycopg.Error) -> NoReturn:
    said = " ".join(str(error).split())
    if isinstance(error, FULL):
        raise StorageFull(f"PostgreSQL has no room ({said}). Free some disk space there, then try again.") from error
    if isinstance(error, DAMAGED):
        raise damaged(f"PostgreSQL says that its files are damaged ({said}).") from error
    if isinstance(error, errors.InsufficientPrivilege):
        raise KBError(
            f"PostgreSQL does not allow this ({said}). docs/deploy.md lists the rights that kb needs; the first start "
            "and upgrades need those of the owner."
        ) from error
    if isinstance(error, REFUSED):
        raise InvalidRequest(f"PostgreSQL refused the connection ({said}). Check KB_DATABASE_URL.") from error
    if isinstance(error, BUSY):
        raise Unavailable(f"The database is busy ({said}). Try again in a moment.") from error
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        raise Unavailable(f"PostgreSQL cannot be reached ({said}). Try again in a moment.") from error
    raise Conflict(f"The database refused a statement ({said}).") from error
