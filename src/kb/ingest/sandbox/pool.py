"""Sandboxed processes that wait for their next file: as many as are asked at once, none before the first file."""

import threading
from collections.abc import Sequence

from kb.core.errors import JobFailure
from kb.core.types import Interrupt, Json
from kb.ingest.extract import Source
from kb.ingest.sandbox.frames import Frame
from kb.ingest.sandbox.process import GoneError, Process, ProcessLimits, Work


class Pool:
    """For several threads: each has a process to itself until it gives it back."""

    def __init__(self, limits: ProcessLimits, work: Work, program: Sequence[str]) -> None:
        self._limits = limits
        self._work = work
        self._program = program
        self._lock = threading.Lock()
        self._idle: list[Process] = []

    def ask(self, request: Json, payload: bytes, source: Source, interrupt: Interrupt) -> tuple[Process, Frame]:
        """Send a request to an idle or new process; return the process and its first answer."""
        while True:
            process = self._taken() or Process(self._limits, self._work, self._program)
            try:
                with source.open() as file:
                    process.send(request, payload, interrupt, [file.fileno()])
                return process, process.receive(interrupt)
            except GoneError:
                continue
            except OSError as error:
                process.kill()
                raise JobFailure("corrupt", f"Its original cannot be read: {error.strerror}.") from None
            except BaseException:
                process.kill()
                raise

    def give_back(self, process: Process) -> None:
        with self._lock:
            self._idle.append(process)

    def close(self) -> None:
        with self._lock:
            for process in self._idle:
                process.kill()
            self._idle.clear()

    def _taken(self) -> Process | None:
        """An idle process that is still alive: the system may have ended others when memory was short."""
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if process.alive:
                    return process
                process.kill()
        return None
