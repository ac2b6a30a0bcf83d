"""One server of PostgreSQL on a machine of its own: primary or standby, killed, frozen, promoted, made again."""

import os
import pwd
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from cluster.network import Machine
from postgres import PROGRAMS, SETTINGS, START_SECONDS, processes

USER = "nobody"  # PostgreSQL refuses to run as root
PORT = 5432
CONFIGURED = SETTINGS | {"listen_addresses": "*", "wal_keep_size": "1GB", "wal_sender_timeout": "10s"}


class Server:
    def __init__(self, machine: Machine, folder: Path, subnet: str) -> None:
        self.machine = machine
        self.url = f"postgresql://postgres@{machine.address}:{PORT}/postgres?connect_timeout=2"
        self.local_url = f"postgresql://postgres@/postgres?host={folder}&port={PORT}"  # without the network
        self._folder = folder
        self._data = folder / "data"
        self._subnet = subnet
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        os.chown(folder, pwd.getpwnam(USER).pw_uid, -1)

    def create(self) -> None:
        self._program("initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "--locale=C.UTF-8", "--no-sync")
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all,replication all {self._subnet} trust\n")
        self.configure()
        self.start()

    def follow(self, primary: "Server") -> None:
        """Become a standby of this primary; what is here already is rewound, else copied anew."""
        source = primary.url + "&application_name=standby"
        try:
            self._program("pg_rewind", "-D", self._data, "--source-server", source, "--no-sync")
        except subprocess.CalledProcessError:
            shutil.rmtree(self._data, ignore_errors=True)
            self._program("pg_basebackup", "-D", self._data, "-d", source, "--checkpoint=fast", "--no-sync")
        (self._data / "standby.signal").touch()
        shutil.chown(self._data / "standby.signal", USER)
        self.configure(primary_conninfo=source)
        self.start()

    def configure(self, **settings: str) -> None:
        """Exactly these settings beside the usual ones, also in a server that runs."""
        lines = [f"{name} = '{value}'\n" for name, value in (CONFIGURED | settings).items()]
        (self._data / "postgresql.auto.conf").write_text("".join(lines))
        if self._process:
            self._process.send_signal(signal.SIGHUP)

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._as_user("postgres", "-D", self._data, "-p", PORT, "-k", self._folder), stdout=log, stderr=log
            )
        end = time.monotonic() + START_SECONDS
        while not self.answers():
            if time.monotonic() > end or self._process.poll() is not None:
                raise AssertionError((self._folder / "log").read_text()[-3000:])
            time.sleep(0.05)

    def answers(self) -> bool:
        try:
            self.ask("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(sql.encode()).fetchall()

    def promote(self) -> None:
        """Not waiting within the statement: recovery, which goes on for a moment, may cancel it."""
        self.ask("SELECT pg_promote(false)")
        while self.ask("SELECT pg_is_in_recovery()") != [(False,)]:
            time.sleep(0.02)

    def first_process(self) -> int | None:
        return self._process.pid if self._process else None

    def processes(self) -> list[int]:
        """The server's first process and all that it started."""
        first = self.first_process()
        return [] if first is None else processes(first)

    def kill(self) -> None:
        """As in a power cut: every process ends at once, frozen or not."""
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._ended()

    def stop(self) -> None:
        """In order: connections are broken off, the standby gets everything."""
        if self._process:
            self._process.send_signal(signal.SIGINT)
        self._ended()

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def processor_seconds(self) -> float:
        """What all processes of the server have taken so far, those that have ended included."""
        ticks = 0
        for process in self.processes():
            with suppress(FileNotFoundError):
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def _signal(self, number: signal.Signals) -> None:
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, number)

    def _ended(self) -> None:
        if self._process:
            self._process.wait(START_SECONDS)
            self._process = None

    def who(self) -> tuple[str, ...]:
        """What starts a program as the user of the server."""
        return ("setpriv", f"--reuid={USER}", f"--regid={pwd.getpwnam(USER).pw_gid}", "--clear-groups")

    def _as_user(self, program: str, *arguments: object) -> list[str]:
        return [*self.machine.inside, *self.who(), str(PROGRAMS / program), *map(str, arguments)]

    def _program(self, program: str, *arguments: object) -> None:
        with (self._folder / "log").open("ab") as log:
            subprocess.run(self._as_user(program, *arguments), check=True, stdout=log, stderr=log, cwd=self._folder)
