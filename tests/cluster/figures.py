"""What several engines are for, in figures: reading what another engine wrote, restarts, throughput, and its price."""

import json
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from cluster.cluster import Cluster, running
from cluster.hammer import QUESTIONS
from cluster.readers import Findable, Reader
from cluster.trial import say
from crash.plan import Maker
from support import Http

PASSAGES = 1000
WRITERS = 8
TOLD_EVERY = 1000  # searches
SPEEDUP, POSTGRES_MS = 1.7, 0.3  # what is promised


def reads(searches: int) -> bool:
    """Several clients write through the first engine; each of the others must find it at once."""
    asked = misses = 0
    with running(3) as cluster, ThreadPoolExecutor(WRITERS) as pool:
        first, *others = [engine.http for engine in cluster.engines]

        def missed(notes: Maker) -> int:
            text = notes.text()
            id_ = first.add_note(text)
            answers = [other.search(text.split()[1], mode="fts")["results"] for other in others]
            return sum({hit["document_id"] for hit in found} != {id_} for found in answers)

        makers = [Maker(1, letter) for letter in "abcdefgh"[:WRITERS]]
        while asked < searches:
            misses += sum(pool.map(missed, makers))
            asked += WRITERS * len(others)
            if asked % TOLD_EVERY < WRITERS * len(others):
                say(f"reads: {asked} searches, {misses} misses")
    say(f"reads: each note through one engine, {asked} searches through two others at once: {misses} misses")
    return misses == 0


def restarts() -> bool:
    """Stop every engine by SIGTERM and start it again, one after the other, under clients that ask everything once."""
    with running(3) as cluster:
        journal, stop = Findable(), threading.Event()
        http = cluster.balancer.http
        notes = Maker(2, "s")
        for _ in range(20):
            text = notes.text()
            journal.known.append((text.split()[1], http.add_note(text)))
        readers = [Reader(http, f"restarts {number}", journal, stop) for number in range(4)]
        adders = [Adder(http, Maker(3, letter), stop) for letter in "tu"]
        clients: list[Reader | Adder] = [*readers, *adders]
        for one in clients:
            one.start()
        for engine in cluster.engines:
            time.sleep(1)
            if code := engine.stop():
                journal.wrong(f"an engine stopped with exit code {code}")
            engine.start()
            cluster.until_sound()
        time.sleep(1)
        stop.set()
        for one in clients:
            one.join()
        acknowledged = [job for adder in adders for job in adder.jobs]
        for job in acknowledged:
            if (ended := http.ended(job))["status"] != "completed":
                journal.wrong(f"an addition that was acknowledged did not complete: {ended}")
    searches, added = sum(reader.answers for reader in readers), len(acknowledged)
    failures = [failure for one in clients for failure in one.failures] + journal.violations
    say(f"restarts: 3 engines in turn under {searches} searches and {added} additions: {len(failures)} failed")
    for failure in failures[:10]:
        say(f"  {failure}")
    return not failures


class Adder(threading.Thread):
    """Adds notes, and takes no failure for an answer that may be asked for again."""

    def __init__(self, http: Http, notes: Maker, stop: threading.Event) -> None:
        super().__init__(name="adder")
        self.jobs: list[str] = []  # that were acknowledged
        self.failures: list[str] = []
        self._http, self._notes, self._stopped = http, notes, stop

    def run(self) -> None:
        while not self._stopped.wait(0.05):
            try:
                reply = self._http("POST", "/api/v1/jobs?wait=30", {"text": self._notes.text()})
            except OSError as error:
                self.failures.append(repr(error))
                continue
            if reply.status == 202:
                self.jobs.append(reply.json["job_id"])
            else:
                self.failures.append(f"{reply.status} {reply.body[:200]!r}")


def scale(seconds: float) -> bool:
    """Searches a second of one engine on a core, and of two on a core each; each with a client on its core."""
    with running(2, [("taskset", "-c", "0"), ("taskset", "-c", "1")]) as cluster:
        fill(cluster, PASSAGES)
        first, second = (engine.http.url for engine in cluster.engines)
        best = 0.0
        for _ in range(2):
            one = sum(hammered([first], seconds))
            two = sum(hammered([first, second], seconds))
            best = max(best, two / one)
            say(f"scale: {one:.0f} searches/s by one engine on a core, {two:.0f} by two: {two / one:.2f} times")
    return best >= SPEEDUP


def cost() -> bool:
    """What PostgreSQL takes of a search, processes of its connections and all others included."""
    with running(1) as cluster:
        fill(cluster, PASSAGES)
        server = cluster.servers.primary
        hammered([cluster.engines[0].http.url], 2)
        time.sleep(3)
        idle = server.processor_seconds()
        time.sleep(5)
        began = server.processor_seconds()
        background = (began - idle) / 5
        rate = sum(hammered([cluster.engines[0].http.url], 15))
        spent = server.processor_seconds() - began - background * 15
    each = spent / (rate * 15) * 1000
    say(f"cost: PostgreSQL takes {each:.3f} ms of CPU for a search (at {rate:.0f} searches/s)")
    return each <= POSTGRES_MS


def hammered(urls: list[str], seconds: float) -> list[float]:
    """Searches a second of each engine, all asked at the same time by a client on its core."""
    clients = [
        subprocess.Popen(
            ["taskset", "-c", str(core), sys.executable, "-m", "cluster.hammer", url, str(seconds)],
            stdout=subprocess.PIPE,
        )
        for core, url in enumerate(urls)
    ]
    return [json.loads(client.communicate()[0]) for client in clients]


def fill(cluster: Cluster, passages: int) -> None:
    http, notes = cluster.engines[0].http, Maker(4, "f")
    body = "".join(f"\n\n## Part {number}\n\n{notes.text(8)}" for number in range(passages // 20))
    for number in range(20):
        reply = http.add_file(f"book-{number}.md", f"# Book {number}{body}".encode(), wait=300)
        assert reply.json["status"] == "completed", reply.body
    http.search(QUESTIONS[0])
