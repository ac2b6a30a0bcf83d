"""What a search takes before the searcher answers it."""

import pytest

from kb.core.searches import SearchRequest
from kb.core.settings import Settings
from kb.engine.assembly import RunningEngine
from kb.search.searcher import Found


def test_bulk_work_waits_while_a_search_is_answered(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    free: list[bool] = []

    with RunningEngine(settings) as engine:

        def search(_: SearchRequest) -> Found:
            free.append(engine._priority.give_way())
            return Found([], None)

        monkeypatch.setattr(engine._searcher, "search", search)
        engine.search(SearchRequest("x"))
        assert (free, engine._priority.give_way()) == ([False], True)
