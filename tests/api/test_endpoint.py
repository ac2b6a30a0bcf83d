"""An engine whose vectors come from an endpoint: what was accepted while that is away is embedded when it is back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedding_server import EmbeddingServer, bags_of_words, minilm
from support import Http, StartEngine, eventually

NOTE = "The tamarin sleeps in a hollow tree."


@pytest.fixture
def endpoint() -> Iterator[EmbeddingServer]:
    server = EmbeddingServer(minilm())
    yield server
    server.close()


def test_nothing_is_lost_while_the_endpoint_is_away(start_engine: StartEngine, endpoint: EmbeddingServer) -> None:
    http = Http((engine := start_engine(KB_EMBED_URL=endpoint.url)).url)
    note = http.add_note(NOTE)
    assert http.search("where does the monkey rest", mode="vector")["results"][0]["document_id"] == note
    status = http("GET", "/api/v1/status").json
    assert (status["model"]["name"], status["health"]["status"]) == ("served", "healthy")
    assert endpoint.url in status["device"]

    endpoint.close()
    away = http("POST", "/api/v1/search", {"query": "which animal is awake"})
    assert (away.status, away.json["error"]["code"]) == (503, "unavailable")
    assert "cannot be reached" in away.json["error"]["message"]
    assert http.search("tamarin", mode="fts")["results"][0]["document_id"] == note
    assert http("PATCH", f"/api/v1/notes/{note}", {"text": "Something else."}).status == 503
    assert http("GET", f"/api/v1/documents/{note}").json["text"] == NOTE
    job = http("POST", "/api/v1/jobs", {"text": "The owl hunts in the dark."}).json["job_id"]
    eventually(lambda: http.job(job)["attempts"] == 0 and http.job(job)["status"] == "queued")
    assert http("GET", "/api/v1/status").json["health"]["status"] == "degraded"

    engine.stop()
    http = Http(start_engine(KB_EMBED_URL=endpoint.url).url)  # it starts although the endpoint is away
    assert http.search("tamarin", mode="fts")["results"][0]["document_id"] == note
    back = endpoint.again()
    assert http.ended(job)["status"] == "completed"
    assert "owl" in http.search("nocturnal bird", mode="vector")["results"][0]["text"]
    assert http("GET", "/api/v1/status").json["health"]["status"] == "healthy"
    assert http("GET", "/api/v1/doctor").json["healthy"]
    back.close()


def test_a_new_knowledge_base_takes_vectors_of_any_length(start_engine: StartEngine, endpoint: EmbeddingServer) -> None:
    endpoint.embed = bags_of_words(64)
    http = Http((engine := start_engine(KB_EMBED_URL=endpoint.url)).url)
    note = http.add_note(NOTE)
    assert http.search("a hollow tree", mode="vector")["results"][0]["document_id"] == note
    engine.stop()
    http = Http(start_engine(KB_EMBED_URL=endpoint.url).url)
    assert http.search("a hollow tree", mode="vector")["results"][0]["document_id"] == note
    assert http("GET", "/api/v1/doctor").json["healthy"]


def test_an_index_of_another_model_is_refused_until_it_is_made_anew(
    start_engine: StartEngine, endpoint: EmbeddingServer, tmp_path: Path
) -> None:
    engine = start_engine()
    note = Http(engine.url).add_note(NOTE)
    engine.stop()
    with pytest.raises(AssertionError, match="serve --reindex"):
        start_engine(KB_EMBED_URL=endpoint.url)
    http = Http((engine := start_engine(arguments=["--reindex"], KB_EMBED_URL=endpoint.url)).url)
    eventually(lambda: http("GET", "/api/v1/status").json["queue"]["running"] == 0)
    assert http.search("where does the monkey rest", mode="vector")["results"][0]["document_id"] == note
    refused = http("POST", "/api/v1/reindex", {"model": "all-MiniLM-L6-v2"})
    assert refused.status == 422
    assert "KB_EMBED_URL" in refused.json["error"]["message"]
    engine.stop()
    with pytest.raises(AssertionError, match="serve --reindex"):
        start_engine()
