"""What Prometheus finds at /metrics."""

from support import Http, StartEngine, eventually


def values(http: Http) -> dict[str, float]:
    lines = http("GET", "/metrics").body.decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


def test_every_name_starts_with_kb(http: Http) -> None:
    found = values(http)
    assert found
    assert all(name.startswith("kb_") for name in found)


def test_what_is_there_is_counted(start_engine: StartEngine) -> None:
    http = Http(start_engine().url)
    before = values(http)
    http.add_note("a note that metrics count")
    http.search("metrics count", mode="fts")
    after = values(http)
    assert after["kb_documents"] == before["kb_documents"] + 1
    assert after["kb_chunks"] == before["kb_chunks"] + 1
    assert after["kb_cached_postings"] > 0
    assert after["kb_database_bytes"] > 0
    posted = 'kb_http_requests_total{method="POST",status="200"}'
    assert after[posted] == before.get(posted, 0) + 1


def test_words_are_read_ahead_whenever_they_were_forgotten(start_engine: StartEngine) -> None:
    """An empty engine holds none; the first search reads its own, and the others follow in a pause."""
    http = Http(start_engine().url)
    http.add_note("herons and otters")
    http.search("herons", mode="fts")

    def held() -> tuple[float, float]:
        found = values(http)
        return found["kb_words_ready"], found["kb_cached_postings"]

    eventually(lambda: held() == (1, 2), 60)
