"""The address of a PostgreSQL server: checked, completed, and shown without its password."""

import os
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kb.core.errors import InvalidRequest

LOCAL = ("localhost", "127.0.0.1", "::1")
STATEMENT_SECONDS = 600  # far longer than any statement takes; without it a lost server could hold a thread for ever
# How soon a server that says nothing any more is given up, so that another can take its place within seconds.
CONNECTION: dict[str, Any] = {
    "connect_timeout": 3,  # seconds for each host
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "tcp_user_timeout": 3000,  # milliseconds
    "target_session_attrs": "read-write",  # of several hosts, the one that is the primary now
    "application_name": "kb",
}
# While the primary is away; a server that does not answer at once is of no use then.
ANYWHERE: dict[str, Any] = {"target_session_attrs": "any", "connect_timeout": 2}
# Statements are many, short and the same: planning or compiling each of them takes longer than running it.
SESSION = {
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "idle_in_transaction_session_timeout": f"{STATEMENT_SECONDS}s",
    "lock_timeout": "20s",  # more than any write takes: then the one that has the lock stands still
    "client_connection_check_interval": "1s",
    # The server gives up an engine likewise: it may have locked what others wait for.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "5",
    "tcp_user_timeout": "10s",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "timezone": "UTC",
}


@dataclass(frozen=True, slots=True)
class Address:
    conninfo: str  # for psycopg
    anywhere: str  # the same for any of the servers, also a standby
    schema: str
    shown: str  # without the password


def parsed(url: str, name: str) -> Address:
    """The address of the knowledge base `name`. Beyond this machine, only a server that proves who it is is taken."""
    try:
        given: dict[str, Any] = conninfo_to_dict(url)
    except ProgrammingError as wrong:
        said = re.sub(r':? *"[^"]*"', "", str(wrong)).strip()  # what is quoted may be the password
        raise InvalidRequest(
            f"KB_DATABASE_URL cannot be understood ({said}). It looks like postgresql://user:password@host/database. "
            "In a password, % is written %25, / is %2F, @ is %40."
        ) from wrong
    if "@" in str(given.get("dbname", "")):
        raise InvalidRequest(
            "KB_DATABASE_URL has an @ behind the first /. In a password, / is written %2F, and @ is written %40."
        )
    if not all(is_local(host) for host in hosts(given)):
        mode = given.setdefault("sslmode", "verify-full")
        if mode != "verify-full":
            raise InvalidRequest(
                f"KB_DATABASE_URL asks for sslmode={mode}, which does not prove that the server is the right one. "
                "Leave sslmode out or say verify-full; sslrootcert=FILE names the certificate of your own authority."
            )
        if "PGSSLROOTCERT" not in os.environ:
            given.setdefault("sslrootcert", "system")
    session = {**SESSION, "search_path": f'"{name}"'}
    given = CONNECTION | given
    options = " ".join(f"-c {key}={value}" for key, value in session.items())
    given["options"] = f"{given.get('options', '')} {options}".strip()
    where = ",".join(hosts(given)) or "the local socket"
    port = f":{given['port']}" if "port" in given else ""
    shown = f"postgresql://{where}{port}/{given.get('dbname', '')} schema {name}"
    return Address(make_conninfo("", **given), make_conninfo("", **given | ANYWHERE), name, shown)


def hosts(given: dict[str, Any]) -> list[str]:
    """What the client connects to; an address counts more than a name, and the environment has defaults."""
    if service := given.get("service") or os.environ.get("PGSERVICE"):
        return [f"service {service}"]  # a file of the client says where that is
    named = given.get("hostaddr") or given.get("host") or os.environ.get("PGHOSTADDR") or os.environ.get("PGHOST")
    return [host for host in str(named or "").split(",") if host]


def is_local(host: str) -> bool:
    return host in LOCAL or PurePosixPath(host).is_absolute() or host.startswith("@")
