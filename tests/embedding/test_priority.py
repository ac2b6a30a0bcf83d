"""Bulk work waits while a search runs, but never for long."""

from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from kb.embedding.priority import Priority


def test_without_a_search_bulk_work_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.embedding.priority.LONGEST", 3600)
    priority = Priority()
    with priority.search():
        pass
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(priority.give_way).result(10)


def test_bulk_work_waits_until_the_last_search_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.embedding.priority.LONGEST", 3600)
    priority = Priority()
    with ThreadPoolExecutor(1) as pool:
        with priority.search():
            with priority.search():
                working = pool.submit(priority.give_way)
                assert not wait([working], 0.05).done
            assert not wait([working], 0.05).done
        assert working.result(10)


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
