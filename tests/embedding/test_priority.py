"""What is urgent goes first, and the rest goes on all the same."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kb.embedding.priority import Precedence


def test_nobody_waits_while_nothing_is_urgent() -> None:
    precedence = Precedence()
    with precedence.first():
        pass
    started = time.monotonic()
    for _ in range(100):
        precedence.give_way()
    assert time.monotonic() - started < 1


def test_work_gives_way_until_the_last_of_what_is_urgent_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.embedding.priority.LONGEST", 10)
    precedence = Precedence()
    done = threading.Event()
    seen: list[bool] = []

    def work() -> None:
        precedence.give_way()
        seen.append(done.is_set())

    with ThreadPoolExecutor(1) as pool:
        with precedence.first():
            with precedence.first():
                working = pool.submit(work)
            time.sleep(0.005)
            done.set()
        working.result(10)
    assert seen == [True]


def test_however_long_something_urgent_takes_work_goes_on() -> None:
    precedence = Precedence()
    with precedence.first(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(precedence.give_way).result(10) is False
    assert precedence.give_way()


def test_what_fails_is_not_urgent_any_more() -> None:
    precedence = Precedence()
    with pytest.raises(ZeroDivisionError), precedence.first():
        raise ZeroDivisionError
    assert precedence._urgent == 0


def test_it_is_quiet_when_nothing_urgent_came_for_a_while() -> None:
    precedence = Precedence()
    quiet = [precedence.is_quiet]
    with precedence.first():
        quiet.append(precedence.is_quiet)
    quiet.append(precedence.is_quiet)
    precedence._last -= 10
    quiet.append(precedence.is_quiet)
    assert quiet == [True, False, False, True]
