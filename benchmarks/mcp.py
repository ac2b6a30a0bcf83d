"""What the MCP server adds to a REST call, and whether eight agents at once lose anything.

The same question goes to the engine and through the MCP server by turns, each over a connection that stays open, so the
machine's noise meets both alike. The agents then work with the official client, half of them with sessions, half
without.
"""

import http.client
import itertools
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio

from benchmarks import texts
from benchmarks.engine import EngineProcess, KbProcess, Note, fill, running_engine
from benchmarks.report import Section, median, percentile, verdict
from mcp import Client

GOAL_ABOVE_MS = 3.0
NOTES = 300
AGENTS = 8
SECONDS = 60.0
WARM_UP = 30


def measure(*, quick: bool) -> list[Section]:
    notes, asked, seconds = (200, 30, 5.0) if quick else (NOTES, 500, SECONDS)
    with tempfile.TemporaryDirectory() as scratch, running_engine(Path(scratch) / "kb") as engine:
        fill(engine, [Note(text) for text in texts.notes(notes)])
        server = KbProcess("mcp", Path(scratch) / "mcp.log", KB_ENGINE_URL=engine.url, KB_MCP_PORT="0")
        try:
            added = overhead(engine, server.url, texts.questions(asked + WARM_UP))
            together = anyio.run(crowd, engine, server.url, seconds)
        finally:
            server.stop()
    return [added, together]


class Session:
    """Calls of one MCP session over one connection, with nothing in between that would cost time of its own."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._connection = http.client.HTTPConnection(self._url.netloc, timeout=60)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        opened, _ = self.post({"id": 0, "method": "initialize", "params": about})
        self._headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
        self.post({"method": "notifications/initialized"})

    def post(self, message: dict[str, Any]) -> tuple[http.client.HTTPResponse, bytes]:
        body = json.dumps({"jsonrpc": "2.0", **message})
        self._connection.request("POST", self._url.path, body, self._headers)
        answer = self._connection.getresponse()
        return answer, answer.read()

    def search(self, question: str) -> None:
        params = {"name": "kb_search", "arguments": {"query": question}}
        _, body = self.post({"id": 1, "method": "tools/call", "params": params})
        if b'"isError":false' not in body:
            raise RuntimeError(body)


class PlainCalls(Session):
    """The same without a session: one POST, one answer in JSON."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._connection = http.client.HTTPConnection(self._url.netloc, timeout=60)
        self._headers = {"Content-Type": "application/json"}


def overhead(engine: EngineProcess, url: str, questions: list[str]) -> Section:
    rest = engine.connect()
    ways: dict[str, Callable[[str], object]] = {
        "REST": rest.search,
        "MCP, a session": Session(url).search,
        "MCP, a plain POST": PlainCalls(url).search,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number, question in enumerate(questions):
        # Every way is first as often as the others: what the engine remembers of a question helps none of them.
        order = list(itertools.islice(itertools.cycle(ways), number % 3, number % 3 + 3))
        for name in order:
            started = time.perf_counter()
            ways[name](question)
            if number >= WARM_UP:
                times[name].append((time.perf_counter() - started) * 1000)
    base = median(times["REST"])
    above = median(times["MCP, a session"]) - base
    return Section(
        "What the MCP server adds to a search",
        f"{len(times['REST'])} questions, `kb_search` with its defaults; each question is asked every way.",
        ("", "p50, ms", "p95, ms", "above REST, p50, ms"),
        [
            [name, f"{median(values):.2f}", f"{percentile(values, 0.95):.2f}", f"{median(values) - base:.2f}"]
            for name, values in times.items()
        ],
        [f"Goal: at most {GOAL_ABOVE_MS:g} ms above REST: {verdict(above <= GOAL_ABOVE_MS)}."],
    )


class Agent:
    """Adds, searches, reads and updates notes, and remembers what every note has to say at the end."""

    def __init__(self, number: int, client: Client) -> None:
        self.number = number
        self.calls = 0
        self.errors: list[str] = []
        self.notes: dict[int, str] = {}
        self._client = client
        self._chance = random.Random(number)

    async def work(self, until: float) -> None:
        while time.monotonic() < until:
            kind = self._chance.choices(("add", "search", "get", "update", "jobs", "status"), (3, 6, 2, 2, 1, 1))[0]
            await getattr(self, f"_{kind}")()

    async def _call(self, tool: str, **arguments: Any) -> Any:
        self.calls += 1
        try:
            result = await self._client.call_tool(tool, arguments)
        except Exception as error:  # noqa: BLE001 - whatever it is, it counts
            self.errors.append(f"{tool}: {error!r}")
            return None
        if result.is_error:
            self.errors.append(f"{tool}: {result.content}")
            return None
        return result.structured_content

    async def _add(self) -> None:
        text = f"Agent {self.number} saw {self._chance.random()} ships in harbour {self.calls}."
        answer = await self._call("kb_addnote", text=text, tags=[f"agent:{self.number}"])
        if answer:
            self.notes[answer["document_id"]] = text

    async def _search(self) -> None:
        await self._call("kb_search", query=f"ships in harbour {self._chance.randrange(1000)}", top=5)

    async def _get(self) -> None:
        if self.notes:
            note = self._chance.choice(list(self.notes))
            answer = await self._call("kb_get", document_id=note)
            if answer and answer["text"] != self.notes[note]:
                self.errors.append(f"note {note} says {answer['text']!r}")

    async def _update(self) -> None:
        if self.notes:
            note = self._chance.choice(list(self.notes))
            text = f"Agent {self.number} corrects: {self._chance.random()} ships."
            if await self._call("kb_update_note", document_id=note, text=text):
                self.notes[note] = text

    async def _jobs(self) -> None:
        await self._call("kb_jobs", status="failed")

    async def _status(self) -> None:
        await self._call("kb_status")


async def crowd(engine: EngineProcess, url: str, seconds: float) -> Section:
    agents: list[Agent] = []

    async def one(number: int) -> None:
        async with Client(url, mode="legacy" if number % 2 else "auto") as client:
            agents.append(Agent(number, client))
            await agents[-1].work(time.monotonic() + seconds)

    async with anyio.create_task_group() as tasks:
        for number in range(AGENTS):
            tasks.start_soon(one, number)
    calls, errors = sum(agent.calls for agent in agents), [error for agent in agents for error in agent.errors]
    notes = {note: text for agent in agents for note, text in agent.notes.items()}
    rest = engine.connect()
    lost = [note for note, text in notes.items() if rest.document(note)["text"] != text]
    return Section(
        "Eight agents at once",
        f"{AGENTS} agents with the official client, adding, searching, reading and updating for {seconds:g} s through "
        "one MCP server; at the end every note is read back from the engine.",
        ("calls", "calls/s", "notes", "errors", "notes lost"),
        [[f"{calls}", f"{calls / seconds:.0f}", f"{len(notes)}", f"{len(errors)}", f"{len(lost)}"]],
        [*errors[:5], f"Goal: no error, no lost note: {verdict(not errors and not lost)}."],
    )
