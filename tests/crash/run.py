"""The whole trial: write and kill, work off the queue and kill, then look at everything."""

import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from crash import inside, verify
from crash.changes import Changer
from crash.plan import plans
from crash.target import Killer, Target
from crash.writers import Journal, Writer
from postgres import PostgresServer

DONE_SECONDS = 1500  # for the writers to be through, kills included


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did and what was wrong."""

    seed: int
    kills: int
    outages: int  # of the database server
    requested: int  # distinct additions, repeats, replacements and changes
    journal: Journal
    in_doubt: tuple[int, int]  # changes without an answer: did not happen, happened
    documents: int
    seconds: float

    def __str__(self) -> str:
        j = self.journal
        lines = [
            f"seed {self.seed}: {self.kills} kills, {self.outages} outages of the database in {self.seconds:.0f} s",
            f"requests acknowledged    {j.acknowledged} of {self.requested}",
            f"  completed at once      {j.completed}",
            f"  known already          {j.duplicates}",
            f"requests that broke off  {j.unanswered}",
            f"changes in doubt         {sum(self.in_doubt)}, of which {self.in_doubt[1]} had happened",
            f"documents at the end     {self.documents}",
            f"violations               {len(j.violations)}",
        ]
        return "\n".join([*lines, *(f"  {violation[:600]}" for violation in j.violations[:20])])


def run(
    seed: int, kills: int, notes: int, files: int, changes: int, server: PostgresServer | None = None, outages: int = 0
) -> Outcome:
    """Kill the engine; if it stores in a server of PostgreSQL, kill that as well, as often as `outages` says."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kb-crash-") as folder:
        target = Target(Path(folder), server.url if server else "")
        try:
            killer = Killer(target, seed, kills, server, outages)
            return trial(target, killer, seed, notes, files, changes, started)
        finally:
            target.kill()


def trial(target: Target, killer: Killer, seed: int, notes: int, files: int, changes: int, started: float) -> Outcome:
    journal = Journal()
    stop = threading.Event()
    steps = plans(seed, notes, files)
    changer = Changer(target.http, seed, changes, journal, stop)
    threads: list[threading.Thread] = [Writer(target.http, share, journal, stop) for share in steps]
    threads.append(changer)
    journal.total = sum(len(share) for share in steps) + changes
    target.until_ready()
    for thread in threads:
        thread.start()
    try:
        while_writing(killer, journal, threads)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    for _ in range(killer.later):
        killer.strike()
    target.until_ready()
    verify.until_drained(target.http)
    documents = verify.check(target.http, steps, changer.states, journal)
    if code := target.stop():
        journal.wrong(f"the engine stopped with exit code {code}")
    for violation in inside.violations(target.settings):
        journal.wrong(violation)
    for traceback in target.tracebacks():
        journal.wrong(f"an engine logged a failure: {traceback}")
    in_doubt = (changer.in_doubt[0], changer.in_doubt[1])
    return Outcome(
        seed, target.kills, killer.outages, journal.total, journal, in_doubt, documents, time.monotonic() - started
    )


def while_writing(killer: Killer, journal: Journal, threads: list[threading.Thread]) -> None:
    """Kill at each point of the work; return when all of it is acknowledged."""
    end = time.monotonic() + DONE_SECONDS
    points = list(killer.points)
    while any(thread.is_alive() for thread in threads):
        if points and journal.share >= points[0]:
            points.pop(0)
            killer.strike()
        if time.monotonic() > end:
            journal.wrong("the writers did not get through in time")
            return
        time.sleep(0.01)
    killer.later += len(points)
