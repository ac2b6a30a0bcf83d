"""Faults while three write, one changes and four search; then everything is looked at, through every engine."""

import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from cluster.cluster import HEAD, SCHEMA, Cluster, Servers, pair_of, running
from cluster.faults import Fate, Fault
from cluster.network import Network
from cluster.readers import Findable, Reader
from crash import inside, verify
from crash.changes import Changer
from crash.plan import WAIT_SECONDS, Addition, Maker, plans
from crash.writers import Writer

READERS = 4
PAUSE_SECONDS = 0.15  # of a writer; looking at everything it wrote, through every engine, takes longer than writing it
PLENTY = 20_000  # more than is sent before the faults are over
GAPS = f"""
SELECT seq FROM (SELECT seq, lag(seq) OVER (ORDER BY seq) AS last FROM {SCHEMA}.changes) c WHERE seq <> last + 1
"""
LAST = f"SELECT max(seq) FROM {SCHEMA}.changes"


@dataclass
class Outcome:
    seed: int
    journal: Findable = field(default_factory=Findable)
    faults: int = 0
    until_written: list[float] = field(default_factory=list)  # seconds from each promotion to the next write
    in_doubt: int = 0
    documents: int = 0
    answers: int = 0
    old: int = 0
    unanswered: int = 0
    longest: float = 0  # seconds that one client waited for an answer to a search
    seconds: float = 0

    def __str__(self) -> str:
        j = self.journal
        waits = ", ".join(f"{one:.1f}" for one in self.until_written)
        lines = [
            f"seed {self.seed}: {self.faults} faults in {self.seconds:.0f} s",
            f"additions acknowledged   {j.acknowledged}, {j.unanswered} requests broke off",
            f"changes in doubt         {self.in_doubt}",
            f"searches                 {self.answers}, {self.old} from memory with a notice, {self.unanswered} failed",
            f"the longest search       {self.longest:.1f} s",
            f"writes after a promotion {waits} s",
            f"documents at the end     {self.documents}",
            f"violations               {len(j.violations)}",
        ]
        return "\n".join([*lines, *(f"  {violation[:600]}" for violation in j.violations[:30])])


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(seed: int, engines: int, faults: list[Fault], servers: Callable[[Network, Path], Servers] = pair_of) -> Outcome:
    outcome = Outcome(seed)
    began = time.monotonic()
    with running(engines, servers=servers) as cluster:
        writers, changer = under_load(cluster, outcome, faults)
        look(cluster, outcome, writers, changer)
    outcome.seconds = time.monotonic() - began
    return outcome


def under_load(cluster: Cluster, outcome: Outcome, faults: list[Fault]) -> tuple[list[Writer], Changer]:
    http, journal, seed = cluster.balancer.http, outcome.journal, outcome.seed
    stop, enough = threading.Event(), threading.Event()
    writers = [Writer(http, steps, journal, stop, enough, PAUSE_SECONDS) for steps in plans(seed, PLENTY, PLENTY // 5)]
    changer = Changer(http, seed, PLENTY, journal, stop, enough)
    readers = [Reader(http, f"{seed} {number}", journal, stop) for number in range(READERS)]
    threads: list[threading.Thread] = [*writers, changer, *readers]
    notes = Maker(seed, "p")

    def probe() -> float:
        writer = Writer(http, [Addition(notes.text(), wait=WAIT_SECONDS)], journal, stop)
        writer.run()
        acknowledged = time.monotonic()
        writers.append(writer)
        return acknowledged

    fate = Fate(cluster, random.Random(f"{seed} victims"), probe)
    for thread in threads:
        thread.start()
    try:
        for fault in faults:
            started = time.monotonic()
            seconds = fault(fate)
            cluster.until_sound()
            outcome.faults += 1
            if seconds is not None:
                outcome.until_written.append(seconds)
            told = "" if seconds is None else f", a write {seconds:.1f} s after the promotion"
            wrong = f", {len(journal.violations)} violations" if journal.violations else ""
            say(f"{time.monotonic() - started:5.1f} s {fault.__name__.replace('_', ' ')}{told}{wrong}")
        enough.set()
        for thread in (*writers, changer):
            if thread.ident is not None:
                thread.join(verify.DRAIN_SECONDS)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    outcome.in_doubt = sum(changer.in_doubt)
    for reader in readers:
        outcome.answers += reader.answers
        outcome.old += reader.old
        outcome.unanswered += len(reader.failures)
        outcome.longest = max(outcome.longest, reader.longest)
    for failure in sorted({failure for reader in readers for failure in reader.failures})[:10]:
        say(f"a search failed: {failure}")
    return writers, changer


def look(cluster: Cluster, outcome: Outcome, writers: list[Writer], changer: Changer) -> None:
    """Everything acknowledged is found, once, through every engine; the log has no gap; the store is whole."""
    journal = outcome.journal
    cluster.until_sound()
    verify.until_drained(cluster.engines[0].http)
    cluster.until_sound()
    done = [writer.done for writer in writers]
    for engine in cluster.engines:
        outcome.documents = verify.check(engine.http, done, changer.states, journal)
    primary = cluster.servers.primary
    if gaps := primary.ask(GAPS):
        journal.wrong(f"the change log has gaps before {gaps[:10]}")
    if primary.ask(LAST) != primary.ask(HEAD):
        journal.wrong("the change log does not end where the head is")
    for engine in cluster.engines:
        if code := engine.stop():
            journal.wrong(f"an engine stopped with exit code {code}")
        for traceback in engine.tracebacks():
            journal.wrong(f"an engine logged a failure: {traceback}")
    for violation in inside.violations(replace(cluster.engines[0].settings, database_url=primary.local_url)):
        journal.wrong(violation)
