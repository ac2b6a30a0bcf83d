"""One sandboxed process, seen from the engine: started when needed, watched, and killed when it breaks a limit."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kb.core.errors import JobFailure
from kb.core.types import Interrupt, Json
from kb.core.values import FailureCode
from kb.ingest.sandbox.frames import HEAD, MESSAGE_BYTES, Frame, pack, unpack

# -P: no module is imported from the current folder.
PROGRAM = (sys.executable, "-P", "-m", "kb.ingest.sandbox.program")
TICK = 0.05  # seconds between two looks at memory, time and whether to go on
PIECE = 2**18
# All that a process gets of the engine's environment: where programs and libraries are, how many threads; never a key.
KEPT = (
    *("PATH", "PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH", "TESSDATA_PREFIX"),
    *("OMP_THREAD_LIMIT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
)
NO_MEMORY = (b"memory allocation of", b"std::bad_alloc", b"MemoryError", b"Out of memory")

Work = Literal["extract", "show", "tesseract", "rapidocr"]  # what a process does all its life


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    memory_mb: int  # resident
    seconds: float  # that the engine waits for the next answer
    output_mb: int  # of one answer
    idle_seconds: float  # without a request, after which the process ends and its memory is free again


class GoneError(Exception):
    """The process had ended before it was asked; another one will answer."""


class Process:
    """For one thread at a time. Every failure is a JobFailure and ends the process."""

    def __init__(self, limits: ProcessLimits, work: Work, program: Sequence[str] = PROGRAM) -> None:
        self._limits = limits
        self._over_memory = False
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._popen = subprocess.Popen(
                [*program, work, str(limits.memory_mb * 2**20), str(limits.idle_seconds)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={name: os.environ[name] for name in KEPT if name in os.environ},
                start_new_session=True,  # a Ctrl-C is meant for the engine, which then ends its processes
            )
        assert self._popen.stderr
        self._socket.setblocking(False)
        os.set_blocking(self._popen.stderr.fileno(), False)
        threading.Thread(target=self._watch, name=f"watch-{self.pid}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def alive(self) -> bool:
        return self._popen.poll() is None

    def send(self, message: Json, payload: bytes, interrupt: Interrupt, files: Sequence[int] = ()) -> None:
        """Send a request; `interrupt` raises when its answer is no longer needed.

        `files` are open descriptors that the process gets a copy of.
        """
        data = memoryview(pack(message, payload))
        deadline = time.monotonic() + self._limits.seconds
        while data:
            self._await(select.POLLOUT, deadline, interrupt)
            try:
                data = data[socket.send_fds(self._socket, [data[:PIECE]], files) :]
                files = ()
            except BlockingIOError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                raise self._ended() from None

    def receive(self, interrupt: Interrupt) -> Frame:
        """Return the next answer, unchecked. The time limit counts only while this waits."""
        deadline = time.monotonic() + self._limits.seconds
        message_bytes, payload_bytes = HEAD.unpack(self._exactly(HEAD.size, deadline, interrupt))
        if message_bytes > MESSAGE_BYTES or payload_bytes > self._limits.output_mb * 2**20:
            raise self._failed("too_complex", f"It gives more than {self._limits.output_mb} MB at once.")
        return unpack(self._exactly(message_bytes + payload_bytes, deadline, interrupt), message_bytes)

    def kill(self) -> None:
        """Kill the process and all processes that it started."""
        if self.alive:
            # It may be ending by itself, and the thread that watches it be the first to know.
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._popen.wait()
        assert self._popen.stderr
        self._popen.stderr.close()
        self._socket.close()

    def _exactly(self, size: int, deadline: float, interrupt: Interrupt) -> bytearray:
        data = bytearray()
        while len(data) < size:
            self._await(select.POLLIN, deadline, interrupt)
            try:
                piece = self._socket.recv(min(PIECE, size - len(data)))
            except BlockingIOError:
                continue
            except ConnectionResetError:  # it ended before it had read everything
                piece = b""
            if not piece:
                raise self._ended()
            data += piece
        return data

    def _await(self, event: int, deadline: float, interrupt: Interrupt) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        while not poll.poll(TICK * 1000):
            interrupt()
            if time.monotonic() > deadline:
                raise self._failed("timeout", f"It gave no answer for {self._limits.seconds:g} seconds.")

    def _watch(self) -> None:
        while self.alive:
            if (resident(self.pid) or 0) > self._limits.memory_mb * 2**20:
                self._over_memory = True
                self._popen.kill()
            time.sleep(TICK)

    def _ended(self) -> JobFailure | GoneError:
        try:
            code = self._popen.wait(1)
        except subprocess.TimeoutExpired:  # it closed its socket and lives on
            return self._failed("crashed", "The process that read it stopped answering.")
        if self._over_memory or self._ran_out():
            return self._failed("out_of_memory", f"It takes more than {self._limits.memory_mb} MB of memory.")
        if code == 0:
            self.kill()
            return GoneError()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return self._failed("crashed", f"The process that read it ended by {how}.")

    def _ran_out(self) -> bool:
        """Whether its error output says that it got no more memory."""
        assert self._popen.stderr
        last_words = self._popen.stderr.read() or b""
        return any(sign in last_words for sign in NO_MEMORY)

    def _failed(self, code: FailureCode, message: str) -> JobFailure:
        self.kill()
        return JobFailure(code, message)


def resident(pid: int) -> int | None:
    """Bytes of memory that a process really holds; None where the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
