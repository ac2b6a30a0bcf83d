"""The outcomes of many tasks: a line each, one progress bar, and a summary at the end.

Failures are listed at the end, each with its reason. On a terminal, unchanged documents are only counted.
"""

import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kb.cli.options import INTERRUPTED, print_json
from kb.cli.screen import Screen, one_line, plural
from kb.core.errors import Conflict, Forbidden, KBError, StorageFull, Unauthorized, Unavailable, UnsupportedFormat
from kb.core.types import Json

COLOURS = {"unchanged": "dim", "queued": "yellow", "kept": "yellow", "skipped": "yellow", "not tried": "dim"}


class TaskOutcome(NamedTuple):
    name: str
    state: str  # added, updated, unchanged, kept, skipped, queued, cancelled, failed, not tried
    detail: str
    answer: Json  # the engine's, with what it belongs to
    exit_code: int = 0


class Task(NamedTuple):
    """One thing to do; a failure is raised."""

    name: str
    about: Json  # what every answer about it says
    act: Callable[[], TaskOutcome]


class Report:
    """Runs one task after the other and reports each."""

    def __init__(self, noun: str, total: int, *, as_json: bool) -> None:
        self.outcomes: list[TaskOutcome] = []
        self.screen = Screen(sys.stderr)
        self._out = Screen(sys.stdout)
        self._noun = noun
        self._total = total
        self._as_json = as_json

    def run(self, tasks: Iterable[Task]) -> int:
        """Run the tasks. Return the exit code of the first failure. An error that all tasks would meet ends the run."""
        stopped: KBError | None = None
        try:
            for task in tasks:
                if stopped:
                    self._take(_failure(task, stopped)._replace(state="not tried"))
                    continue
                try:
                    self.step(task.name, "looking", 0.0)
                    outcome = task.act()
                except KBError as error:
                    outcome = _failure(task, error)
                    if isinstance(error, Unavailable | StorageFull | Unauthorized | Forbidden):
                        stopped = error
                self._take(outcome)
        except KeyboardInterrupt:
            return self._interrupted()
        return self._finish()

    def step(self, name: str, step: str, fraction: float) -> None:
        """Redraw the progress bar: the tasks that have ended, and a part of the current one."""
        number = len(self.outcomes)
        told = f"{number + 1}/{self._total} {one_line(name)}: {step}"
        self.screen.progress(told, (number + min(fraction, 1.0)) / max(self._total, 1))

    def _take(self, outcome: TaskOutcome) -> None:
        self.outcomes.append(outcome)
        self.screen.clear()
        if self._as_json or outcome.exit_code or (outcome.state == "unchanged" and self._out.terminal):
            return
        self._say(self._out, outcome, COLOURS.get(outcome.state, "green"))

    def _finish(self) -> int:
        """List what failed, and sum up."""
        if self._as_json:
            print_json([outcome.answer for outcome in self.outcomes])
        else:
            for outcome in self.outcomes:
                if outcome.exit_code and outcome.state != "not tried":
                    self._say(self.screen, outcome, "red")
            self._say_supported()
            self._out.say(self._summary())
        return next((outcome.exit_code for outcome in self.outcomes if outcome.exit_code), 0)

    def _say_supported(self) -> None:
        """Name the formats that can be read, once for all files."""
        for outcome in self.outcomes:
            details = (outcome.answer.get("error") or {}).get("details") or {}
            if formats := details.get("supported_formats"):
                self.screen.say(f"Supported formats: {', '.join(formats)}.")
                return

    def _interrupted(self) -> int:
        """Sum up what was done before Ctrl-C, and say how to go on."""
        self.screen.clear()
        self._finish()
        left = self._total - len(self.outcomes)
        self.screen.say(
            f"kb: interrupted with {plural(left, self._noun)} left. What the engine has accepted goes on there; "
            "run the same command again to go on: what is done is recognised."
        )
        return INTERRUPTED

    def _say(self, screen: Screen, outcome: TaskOutcome, colour: str) -> None:
        state = screen.style(f"{outcome.state:<9}", colour)
        screen.say(f"{state}  {one_line(outcome.name)}  {one_line(outcome.detail)}".rstrip())

    def _summary(self) -> str:
        counts: dict[str, int] = {}
        for outcome in self.outcomes:
            counts[outcome.state] = counts.get(outcome.state, 0) + 1
        told = ", ".join(f"{count} {state}" for state, count in counts.items())
        return f"{plural(len(self.outcomes), self._noun)}: {told or 'nothing to do'}"


def not_done(name: str, answer: Json) -> TaskOutcome:
    """The outcome of a job that did not complete."""
    from kb.cli.follow import exit_code, reason

    conflict = (answer.get("error") or {}).get("code") == Conflict.code
    return TaskOutcome(name, "kept" if conflict else answer["status"], reason(answer), answer, exit_code(answer))


def _failure(task: Task, error: KBError) -> TaskOutcome:
    """A conflict means that the document which is there was kept. The formats that can be read are told at the end."""
    state = "kept" if isinstance(error, Conflict) else "failed"
    reason = error.details.get("reason") if isinstance(error, UnsupportedFormat) else None
    told = f"It cannot be read: {reason}." if reason else error.message
    return TaskOutcome(task.name, state, told, task.about | {"status": "failed"} | error.body(), error.exit_code)
