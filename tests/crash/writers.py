"""Those who add: each sends its requests in order, each until it is acknowledged, and keeps what it was told."""

import threading
from dataclasses import dataclass, field
from typing import Any

from crash.plan import Addition
from crash.target import Client
from support import Http

BOUNDARY = "between-the-parts"


@dataclass
class Journal:
    """What was acknowledged, and what was wrong. Shared by all threads."""

    total: int = 0  # acknowledgements to expect
    acknowledged: int = 0
    completed: int = 0  # answers that said that the thing can be found already
    duplicates: int = 0
    unanswered: int = 0  # requests that broke off: they may have happened
    job_ids: dict[str, Addition] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def share(self) -> float:
        return self.acknowledged / max(self.total, 1)

    def accepted(self, addition: Addition, answer: Any) -> None:
        with self._lock:
            self.acknowledged += 1
            self.completed += answer["status"] == "completed"
            self.duplicates += "duplicate_of" in answer
            self.job_ids[answer["job_id"]] = addition

    def changed(self) -> None:
        with self._lock:
            self.acknowledged += 1

    def wrong(self, what: str) -> None:
        with self._lock:
            self.violations.append(what)

    def broke_off(self, count: int) -> None:
        with self._lock:
            self.unanswered += count


class Writer(threading.Thread):
    """Sends the steps, or as many of them as are sent until `enough` is set; `done` are those."""

    def __init__(
        self,
        http: Http,
        steps: list[Addition],
        journal: Journal,
        stop: threading.Event,
        enough: threading.Event | None = None,
        pause: float = 0,
    ) -> None:
        super().__init__(name="writer")
        self._pause = pause  # seconds after each step
        self.done: list[Addition] = []
        self._enough = enough or threading.Event()
        self._client = Client(http, stop)
        self._steps = steps
        self._journal = journal
        self._stopped = stop

    def run(self) -> None:
        try:
            for step in self._steps:
                if self._enough.is_set():
                    break
                self.done.append(step)
                self._add(step)
                self._stopped.wait(self._pause)
        except Exception as error:  # noqa: BLE001 - a writer that gives up is a finding, not a silent end
            self._journal.wrong(f"a writer gave up: {error!r}")
        self._journal.broke_off(self._client.unanswered)

    def _add(self, addition: Addition) -> None:
        reply = self._client.until_answered("POST", f"/api/v1/jobs?wait={addition.wait}", **request(addition))
        if reply.status != 202:
            self._journal.wrong(f"{reply.status} for {addition.mark}: {reply.body!r}")
            return
        answer = reply.json
        self._journal.accepted(addition, answer)
        if answer["status"] == "failed":
            self._journal.wrong(f"the job of {addition.mark} failed: {answer}")
        if addition.wait and answer["status"] == "completed":
            self._look(addition, int(answer["document_id"]))

    def _look(self, addition: Addition, document_id: int) -> None:
        """What is answered as completed is there, whatever happens to the engine in between."""
        reply = self._client.until_answered("GET", f"/api/v1/documents/{document_id}")
        if reply.status != 200 or reply.json["content_hash"] != addition.sha256:
            self._journal.wrong(f"{addition.mark} was answered as completed, but: {reply.status} {reply.body[:300]!r}")


def request(addition: Addition) -> dict[str, Any]:
    """Body and headers: JSON for a note, multipart for a file."""
    if addition.is_note:
        body: dict[str, Any] = {"text": addition.text, "tags": list(addition.tags)}
        if addition.source_path is not None:
            body["source_path"] = addition.source_path
        return {"body": body}
    fields = [("tags", tag) for tag in addition.tags]
    if addition.source_path is not None:
        fields.append(("source_path", addition.source_path))
    lines = [f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields]
    lines.append(
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{addition.filename}"\r\n\r\n'
        f"{addition.text}\r\n--{BOUNDARY}--\r\n"
    )
    return {"raw": "".join(lines).encode(), "Content_Type": f"multipart/form-data; boundary={BOUNDARY}"}
