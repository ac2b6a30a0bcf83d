"""Those who search, through the load balancer, for what was acknowledged as findable."""

import http.client
import random
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from crash.plan import Addition
from crash.writers import Journal
from support import Http, Reply

AS_OF = "The database cannot be reached"  # the notice of an answer from memory, which names its moment
PAUSE_SECONDS = 0.02


@dataclass
class Findable(Journal):
    """Also keeps what every search must find from now on: contents that nothing replaces."""

    known: list[tuple[str, int]] = field(default_factory=list)  # the mark and the document's id

    def accepted(self, addition: Addition, answer: Any) -> None:
        super().accepted(addition, answer)
        if answer["status"] == "completed" and addition.source_path is None:
            self.known.append((addition.mark, int(answer["document_id"])))


class Reader(threading.Thread):
    def __init__(self, http: Http, seed: str, journal: Findable, stop: threading.Event) -> None:
        super().__init__(name="reader")
        self.answers = 0
        self.old = 0  # answers from memory, with a notice that says so
        self.failures: list[str] = []  # requests without an answer, or with an error
        self.longest = 0.0  # seconds until an answer
        self._http = http
        self._chance = random.Random(seed)
        self._journal = journal
        self._stopped = stop

    def run(self) -> None:
        while not self._stopped.wait(PAUSE_SECONDS):
            if not self._journal.known:
                continue
            asked = time.monotonic()
            mark, id_ = self._chance.choice(self._journal.known)
            try:
                reply = self._http("POST", "/api/v1/search", {"query": mark, "mode": "fts"})
            except (http.client.HTTPException, OSError) as error:
                self.failures.append(repr(error))
                continue
            if reply.status != 200:
                self.failures.append(f"{reply.status} {reply.body[:200]!r}")
                continue
            self.answers += 1
            self.longest = max(self.longest, time.monotonic() - asked)
            self._judge(reply, mark, id_)

    def _judge(self, reply: Reply, mark: str, id_: int) -> None:
        found = {hit["document_id"] for hit in reply.json["results"]}
        if AS_OF in (reply.json.get("notice") or ""):
            self.old += 1
        elif found != {id_}:
            engine = reply.headers.get("X-KB-Engine")
            self._journal.wrong(f"{mark} of document {id_} was acknowledged, but engine {engine} finds {found}")
