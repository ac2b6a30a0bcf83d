"""Bulk work waits while a search runs, but never for long."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kb.embedding.priority import Priority


def test_without_a_search_bulk_work_does_not_wait() -> None:
    priority = Priority()
    with priority.search():
        pass
    started = time.monotonic()
    for _ in range(100):
        priority.give_way()
    assert time.monotonic() - started < 1


def test_bulk_work_waits_until_the_last_search_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.embedding.priority.LONGEST", 10)
    priority = Priority()
    done = threading.Event()
    seen: list[bool] = []

    def work() -> None:
        priority.give_way()
        seen.append(done.is_set())

    with ThreadPoolExecutor(1) as pool:
        with priority.search():
            with priority.search():
                working = pool.submit(work)
            time.sleep(0.005)
            done.set()
        working.result(10)
    assert seen == [True]


def test_bulk_work_goes_on_beside_a_search_that_does_not_end() -> None:
    priority = Priority()
    with priority.search(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(priority.give_way).result(10) is False
    assert priority.give_way()


def test_a_search_that_fails_has_ended() -> None:
    priority = Priority()
    with pytest.raises(ZeroDivisionError), priority.search():
        raise ZeroDivisionError
    assert priority._running == 0


def test_it_is_quiet_after_some_time_without_a_search() -> None:
    priority = Priority()
    quiet = [priority.is_quiet]
    with priority.search():
        quiet.append(priority.is_quiet)
    quiet.append(priority.is_quiet)
    priority._last -= 10
    quiet.append(priority.is_quiet)
    assert quiet == [True, False, False, True]
