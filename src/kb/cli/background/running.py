"""Who runs kb on this data folder: a file that `kb up` writes, with every process by its id and start time.

The id alone could be another program's by now; together with the start time it is one process and no other. The file
is only trusted as far as its processes are alive.
"""

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from kb.core.errors import Conflict, StorageFull

Folder = str | os.PathLike[str]

FILE, LOCK = "up.json", "up.lock"
STARTED_BY = "KB_STARTED_BY"  # what `kb up` is told of where it runs: `detach` or `service`; else a terminal
PATIENCE_SECONDS = 70  # two servers, each with its own
WAYS = {"terminal": "kb up in a terminal", "detach": "kb up --detach", "service": "the service"}


class Process(NamedTuple):
    pid: int
    started: str  # as the system tells it, to compare only

    @property
    def alive(self) -> bool:
        return self.started != "" and start_time(self.pid) == self.started

    def signal(self, number: int) -> None:
        """Send a signal to this process and to no other."""
        with suppress(ProcessLookupError):
            if self.alive:
                os.kill(self.pid, number)


class Running(NamedTuple):
    """What `kb up` says of itself."""

    way: str
    supervisor: Process
    servers: list[Process]
    engine_url: str
    mcp_url: str

    @property
    def alive(self) -> bool:
        return any(process.alive for process in (self.supervisor, *self.servers))

    def described(self) -> str:
        return f"{WAYS.get(self.way, self.way)}, process {self.supervisor.pid}"


def start_time(pid: int) -> str:
    """When a process was started; empty if there is none, or if it has ended and only waits to be collected."""
    if os.path.exists("/proc/self/stat"):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] == "Z" else fields[19]
    words = ["/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)]
    state, _, started = subprocess.run(words, capture_output=True, text=True, check=False).stdout.partition(" ")
    return "" if state.startswith("Z") else started.strip()


def process(pid: int) -> Process:
    return Process(pid, start_time(pid))


def read(data_dir: Folder) -> Running | None:
    """The kb that runs on this data folder, if one does."""
    try:
        with open(os.path.join(data_dir, FILE), encoding="utf-8") as file:
            said = json.load(file)
        supervisor, *servers = [Process(int(pid), str(started)) for pid, started in said["processes"]]
        running = Running(said["way"], supervisor, servers, said["engine_url"], said["mcp_url"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return running if running.alive else None


@contextmanager
def claimed(data_dir: Folder) -> Iterator[None]:
    """Be the only `kb up` on this data folder; the system ends the claim with the process, however that ends."""
    try:
        os.makedirs(data_dir, mode=0o700, exist_ok=True)
        handle = os.open(os.path.join(data_dir, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as wrong:
        raise StorageFull(
            f"The data folder {data_dir} cannot be used: {wrong.strerror}. Choose another with KB_DATA_DIR."
        ) from wrong
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        make_way(data_dir)
        yield
    except BlockingIOError as held:
        raise Conflict(f"Another kb up is starting on {data_dir}. Wait until it answers, or end it.") from held
    finally:
        os.close(handle)


def make_way(data_dir: Folder) -> None:
    """Refuse where kb runs already; end servers whose supervisor was killed, since they hold ports and data."""
    known = read(data_dir)
    if known and not known.supervisor.alive:
        stop(known)
    elif known:
        end = {"detach": "kb down", "service": "kb service remove"}.get(known.way, "Ctrl-C there")
        raise Conflict(
            f"kb runs on {data_dir} already: {known.described()}. It answers at {known.engine_url}; to end it: {end}"
        )


def write(data_dir: Folder, running: Running) -> None:
    path = os.path.join(data_dir, FILE)
    said = {
        "way": running.way,
        "processes": [running.supervisor, *running.servers],
        "engine_url": running.engine_url,
        "mcp_url": running.mcp_url,
    }
    part = f"{path}.{os.getpid()}"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(said, file)
    os.replace(part, path)


def remove(data_dir: Folder) -> None:
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(data_dir, FILE))


def stop(running: Running, patience: float = PATIENCE_SECONDS) -> bool:
    """Ask the supervisor to end, or the servers that it left; return whether all of them ended in time."""
    import signal

    everyone = [running.supervisor, *running.servers]
    asked = [running.supervisor] if running.supervisor.alive else running.servers
    for one in asked:
        one.signal(signal.SIGTERM)
    deadline = time.monotonic() + patience
    while any(one.alive for one in everyone) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [one for one in everyone if one.alive]
    for one in left:
        one.signal(signal.SIGKILL)
    return not left
