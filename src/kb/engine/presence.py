"""The thread that says every two seconds that this engine lives, and takes over from engines that died."""

import logging
import threading
from dataclasses import dataclass, field

from kb.core.errors import KBError
from kb.core.status import EngineState
from kb.engine.folders.folders import Folders
from kb.engine.jobs.queue import Queue
from kb.engine.recovery import Recovery
from kb.index.chunk_index import ChunkIndex

log = logging.getLogger(__name__)

BEAT_SECONDS = 2.0


@dataclass
class Presence:
    """`leads`: of several engines, one tidies up. `drain_seconds`: how long one that is to stop goes on answering."""

    _queue: Queue
    _recovery: Recovery
    _live: ChunkIndex
    _folders: Folders
    _drain_seconds: float
    leads: bool = False
    draining: bool = False
    _alone: bool = True
    _silent: bool = False
    _stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._beat()
        self._thread = threading.Thread(target=self._run, name="presence")
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def state(self) -> EngineState:
        if self.draining:
            return "draining"
        return "serving" if self._live.loaded else "starting"

    def drain(self) -> float:
        """Say that this engine stops. Return for how many seconds it is still asked: none if there is no other."""
        self.draining = True
        self._beat()
        return 0.0 if self._alone else self._drain_seconds

    def _run(self) -> None:
        while not self._stopping.wait(BEAT_SECONDS):
            self._beat()

    def _beat(self) -> None:
        try:
            beat = self._queue.beat(self.state)
            if not beat.alone or beat.leads != self.leads:
                self._folders.tend(leads=beat.leads)
            self.leads, self._alone = beat.leads, beat.alone
            if beat.left:
                log.warning("an engine died: its jobs run again, and its drafts are removed")
                self._recovery.take_over()
            self._silent = False
        except KBError as error:
            if not self._silent:
                log.warning("this engine cannot say that it lives: %s", error.message)
            self.leads, self._silent = False, True
