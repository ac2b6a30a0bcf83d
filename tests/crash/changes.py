"""One who changes notes: PATCH, tags, restore, delete. A model says what each note must be after each answer.

A request whose answer was lost may have happened or not, but nothing in between: what is read afterwards must be
exactly one of the two states that the model allows.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from crash.plan import Maker
from crash.target import Client
from crash.writers import Journal
from support import Http, Reply

NOTES = 12  # alive at a time


@dataclass(frozen=True, slots=True)
class State:
    """A note as it should be."""

    texts: tuple[str, ...]  # every version, the first one first
    tags: tuple[str, ...] = ()
    deleted: bool = False

    @property
    def text(self) -> str:
        return self.texts[-1]

    def with_text(self, text: str) -> "State":
        return self if text == self.text else replace(self, texts=(*self.texts, text))


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    body: dict[str, Any] | None = None


class Changer(threading.Thread):
    """Keeps some notes of its own in motion; `states` is the truth about each by id."""

    def __init__(
        self,
        http: Http,
        seed: int,
        count: int,
        journal: Journal,
        stop: threading.Event,
        enough: threading.Event | None = None,
    ) -> None:
        super().__init__(name="changer")
        self._enough = enough or threading.Event()
        self.states: dict[int, State] = {}
        self.in_doubt = [0, 0]  # requests without an answer that turned out not to have happened, and to have
        self._client = Client(http, stop)
        self._maker = Maker(seed, "c")
        self._chance = random.Random(f"{seed} changer")
        self._count = count
        self._journal = journal

    def run(self) -> None:
        try:
            for _ in range(self._count):
                if self._enough.is_set():
                    break
                self._step()
        except Exception as error:  # noqa: BLE001 - as for a writer
            self._journal.wrong(f"the changer gave up: {error!r}")
        self._journal.broke_off(self._client.unanswered)

    def _step(self) -> None:
        alive = [id_ for id_, state in self.states.items() if not state.deleted]
        if len(alive) < NOTES:
            self._new()
            return
        id_ = self._chance.choice(alive)
        kinds = (self._to_patch, self._to_patch, self._to_patch, self._to_retag, self._to_restore, self._to_delete)
        request, after = self._chance.choice(kinds)(id_, self.states[id_])
        self._change(id_, request, after)

    def _new(self) -> None:
        text = self._maker.text()
        while True:
            reply = self._client.until_answered("POST", "/api/v1/jobs?wait=20", {"text": text})
            if reply.json["status"] == "completed":
                break
        self.states[int(reply.json["document_id"])] = State((text,))
        self._journal.changed()

    def _to_patch(self, id_: int, state: State) -> tuple[Request, State]:
        text = self._maker.text(self._chance.choice((1, 1, 40)))
        body: dict[str, Any] = {"text": text}
        if self._chance.random() < 0.5:
            body["expected_version"] = len(state.texts)
        return Request("PATCH", f"/api/v1/notes/{id_}", body), state.with_text(text)

    def _to_retag(self, id_: int, state: State) -> tuple[Request, State]:
        add, remove = f"tag{self._chance.randrange(50)}", list(state.tags[:1])
        tags = [tag for tag in state.tags if tag not in remove]
        tags += [] if add in tags else [add]
        body = {"add": [add], "remove": remove}
        return Request("POST", f"/api/v1/documents/{id_}/tags", body), replace(state, tags=tuple(tags))

    def _to_restore(self, id_: int, state: State) -> tuple[Request, State]:
        version = self._chance.randrange(len(state.texts)) + 1
        request = Request("POST", f"/api/v1/notes/{id_}/restore", {"version": version})
        return request, state.with_text(state.texts[version - 1])

    def _to_delete(self, id_: int, state: State) -> tuple[Request, State]:
        return Request("DELETE", f"/api/v1/documents/{id_}"), replace(state, deleted=True)

    def _change(self, id_: int, request: Request, after: State) -> None:
        """Until it is acknowledged, or is seen to have happened."""
        before, doubts = self.states[id_], 0
        while True:
            reply = self._client.once(request.method, request.path, request.body)
            if reply is not None and (reply.status == 200 or not doubts):
                break
            # No answer, or one that refuses what an earlier attempt may have done after all.
            seen = read(self._client.until_answered, id_, after)
            if seen not in (before, after):
                self._journal.wrong(f"note {id_} is neither as before nor as after {request}: {seen}")
                return
            self.in_doubt[seen == after] += 1
            if seen == after:
                self.states[id_] = after
                self._journal.changed()
                return
            doubts += 1
        if reply.status != 200:
            self._journal.wrong(f"{reply.status} for {request}: {reply.body!r}")
        self._journal.changed()
        self.states[id_] = after
        if (seen := read(self._client.until_answered, id_, after)) != after:
            self._journal.wrong(f"note {id_} was answered as changed by {request}, but is {seen}")


Ask = Callable[..., Reply]


def read(ask: Ask, id_: int, expected: State) -> State | str:
    """The note as it is; a sentence when its parts contradict each other."""
    reply = ask("GET", f"/api/v1/documents/{id_}")
    if reply.status == 404:
        return replace(expected, deleted=True)
    document = reply.json
    text, chunks = document["text"], document["chunks"]
    if any(text[c["anchor"]["start"] : c["anchor"]["end"]] != c["text"] for c in chunks):
        return f"the chunks are not of this text: {document}"
    held = "".join(chunk["text"] for chunk in chunks)
    if len(chunks) != document["chunk_count"] or "".join(text.split()) != "".join(held.split()):
        return f"the chunks are not the whole text: {document}"
    versions = ask("GET", f"/api/v1/notes/{id_}/versions").json["versions"]
    if [v["version"] for v in versions] != list(range(document["version"], 0, -1)) or versions[0]["text"] != text:
        return f"version {document['version']} and the history contradict each other: {versions}"
    return State(tuple(v["text"] for v in reversed(versions)), tuple(document["tags"]))
