"""The same pair under Patroni with etcd, which promote without a script. From Debian; left out where they are not."""

import json
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psycopg

from cluster.faults import Fate
from cluster.network import Machine, Network
from cluster.pair import FIRST_LOCAL_PORT
from cluster.server import PORT, USER, Server
from postgres import PROGRAMS

NEEDED = ("patroni", "etcd")
SECONDS = 120
# How soon Patroni takes a leader for dead: `ttl`.
POLICY = {
    "ttl": 15,
    "loop_wait": 3,
    "retry_timeout": 5,
    "synchronous_mode": True,
    "postgresql": {"use_pg_rewind": True, "parameters": {"wal_log_hints": "on", "max_connections": 200}},
}


def missing() -> str | None:
    if absent := [name for name in NEEDED if shutil.which(name) is None]:
        return f"{', '.join(absent)} not found: apt-get install patroni etcd-server python3-etcd"
    return None


class Member(Server):
    """A server that Patroni starts, and a Patroni beside it."""

    def __init__(self, machine: Machine, folder: Path, network: Network, etcd: str) -> None:
        super().__init__(machine, folder, network.subnet)
        address = machine.address
        trusted = [f"host {what} all {network.subnet} trust" for what in ("all", "replication")]
        rules = ["local all all trust", *trusted]
        superuser = {"username": "postgres", "password": "not asked for"}
        settings = {
            "scope": "kb",
            "name": machine.name,
            "restapi": {"listen": f"{address}:8008", "connect_address": f"{address}:8008"},
            "etcd3": {"host": f"{etcd}:2379"},
            "bootstrap": {"dcs": POLICY, "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, {"auth": "trust"}]},
            "postgresql": {
                "listen": f"{address}:{PORT}",
                "connect_address": f"{address}:{PORT}",
                "data_dir": str(self._data),
                "bin_dir": str(PROGRAMS),
                "pgpass": str(folder / "pgpass"),
                "pg_hba": rules,
                "authentication": {"superuser": superuser, "replication": superuser, "rewind": superuser},
                "parameters": {"unix_socket_directories": str(folder)},
            },
        }
        self._settings = folder / "patroni.yml"
        self._settings.write_text(json.dumps(settings))  # which is YAML
        self._patroni: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Patroni decides when the server starts, and as what."""
        with (self._folder / "patroni.log").open("ab") as log:
            self._patroni = subprocess.Popen(
                [*self.machine.inside, *self.who(), "patroni", self._settings], stdout=log, stderr=log, cwd=self._folder
            )

    def kill(self) -> None:
        if self._patroni:
            self._patroni.kill()
            self._patroni.wait()
            self._patroni = None
        self._signal(signal.SIGKILL)

    def first_process(self) -> int | None:
        with suppress(FileNotFoundError, IndexError, ValueError):
            first = int((self._data / "postmaster.pid").read_text().split()[0])
            if str(self._data) in Path(f"/proc/{first}/cmdline").read_text():
                return first
        return None


class Watched:
    """Two members and etcd; who leads is for Patroni to say."""

    def __init__(self, network: Network, folder: Path) -> None:
        etcd = network.machine("etcd")
        data = folder / "etcd"
        data.mkdir()
        shutil.chown(data, USER)
        with (folder / "etcd.log").open("wb") as log:
            here = f"http://{etcd.address}:2379"
            told = ("--listen-client-urls", here, "--advertise-client-urls", here)
            self._etcd = subprocess.Popen(
                [*etcd.inside, "etcd", "--data-dir", data, *told],
                stdout=log,
                stderr=log,
            )
        machines = [network.machine(name) for name in ("db1", "db2")]
        self._members = [Member(one, folder / one.name, network, etcd.address) for one in machines]
        self.ports = {FIRST_LOCAL_PORT + n: f"{one.address}:{PORT}" for n, one in enumerate(machines)}
        self.url = f"postgresql://postgres@{','.join(f'127.0.0.1:{port}' for port in self.ports)}/postgres"
        for member in self._members:
            member.start()
        self.until_sound()

    @property
    def primary(self) -> Member:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for member in self._members:
                with suppress(psycopg.Error):
                    if member.ask("SELECT pg_is_in_recovery()") == [(False,)]:
                        return member
            time.sleep(0.2)
        raise AssertionError("no member becomes the leader")

    def until_sound(self) -> None:
        """Until the leader has a synchronous standby."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with suppress(psycopg.Error):
                if self.primary.ask("SELECT sync_state FROM pg_stat_replication") == [("sync",)]:
                    return
            time.sleep(0.2)
        raise AssertionError("no standby becomes synchronous")

    def close(self) -> None:
        for member in self._members:
            member.kill()
        self._etcd.kill()
        self._etcd.wait()


def the_leader_dies(fate: Fate) -> float:
    """Its Patroni and its server end at once; nobody but the other Patroni promotes. Seconds until a write."""
    servers = fate.cluster.servers
    assert isinstance(servers, Watched)
    leader = servers.primary
    began = time.monotonic()
    leader.kill()
    seconds = fate.probe() - began
    leader.start()
    servers.until_sound()
    return seconds
