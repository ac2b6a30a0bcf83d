"""Vectors from an endpoint of the user's own: right, complete and of one model, or an error that says what to do."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from embedding_server import Embed, EmbeddingServer, bags_of_words, minilm
from kb.core.errors import InvalidRequest, KBError, Unavailable
from kb.core.settings import bundled_model_dir
from kb.embedding.embedder import load
from kb.embedding.endpoint import EndpointEmbedder
from kb.embedding.endpoint_client import Endpoint
from kb.embedding.tokenizer import Tokenizer
from support import eventually

TEXTS = [f"Text number {number} tells of something else" for number in range(70)]
TOKENIZER = Tokenizer(bundled_model_dir() / "tokenizer.json")

StartServer = Callable[..., EmbeddingServer]


@pytest.fixture(scope="module")
def embed() -> Embed:
    return minilm()


@pytest.fixture
def start(embed: Embed) -> Iterator[StartServer]:
    started = []

    def begin(**options: Any) -> EmbeddingServer:
        started.append(EmbeddingServer(embed, **options))
        return started[-1]

    yield begin
    for server in started:
        server.close()


def opened(url: str, model: str = "", key: str = "", recorded: tuple[str, str] | None = None) -> EndpointEmbedder:
    return EndpointEmbedder(Endpoint(url, model, key), TOKENIZER, recorded)


@pytest.mark.parametrize(
    ("protocol", "path"),
    [
        ("openai", ""),
        ("openai", "/v1"),
        ("openai", "/v1/embeddings"),
        ("ollama", ""),
        ("ollama", "/api/embed"),
    ],
)
def test_both_protocols_give_the_vectors_in_order(start: StartServer, protocol: str, path: str) -> None:
    server = start(protocol=protocol)
    embedder = opened(server.url + path, key="secret")
    got = embedder.begin(TEXTS).result()
    assert np.allclose(got, load(bundled_model_dir()).embed(TEXTS), atol=1e-4)
    assert np.allclose(embedder.begin_query(TEXTS[5])(), got[5], atol=1e-4)
    assert (embedder.name, embedder.dimensions, embedder.ready) == ("served", 384, True)
    last = server.requests[-1]
    assert last["model"] == "served"
    assert last["headers"]["Authorization"] == "Bearer secret"
    assert max(len(request["input"]) for request in server.requests) <= 33  # a probe and 32 texts
    assert protocol == "openai" or last["truncate"] is False


def test_a_question_is_asked_once(start: StartServer) -> None:
    server = start()
    embedder = opened(server.url)
    first = embedder.begin_query("the same question")()
    asked = len(server.requests)
    assert embedder.begin_query("the same question")() is first
    assert len(server.requests) == asked


def test_one_of_several_models_has_to_be_named(start: StartServer) -> None:
    server = start(models=["one", "two"])
    with pytest.raises(InvalidRequest, match=r"one, two.*KB_EMBED_MODEL"):
        opened(server.url)
    assert opened(server.url, "two").name == "two"


def test_what_unrelated_texts_have_in_common_is_measured(start: StartServer) -> None:
    server = start()
    near = opened(server.url).description
    shift = np.full(384, 0.1, np.float32)
    plain = server.embed
    server.embed = lambda texts: load(bundled_model_dir()).embed(texts) + shift  # cosines from .79 on
    far = opened(server.url).description
    server.embed = plain
    assert near.fusion.unrelated < 0.15
    assert 0.7 < far.fusion.unrelated < 0.9
    assert far.score.both[1] > 3 * near.score.both[1]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((500, {"error": "no memory"}), "answers 500.*no memory"),
        ((401, {}), "refuses the key.*KB_EMBED_API_KEY"),
        ((302, {}), "redirect"),
        ((200, {"data": []}), "0 vectors to 1 texts"),
        ((200, {"data": [{"index": 0, "embedding": [1.0, 2.0]}]}), "2 dimensions in place of 384"),
        ((200, {"data": [{"index": 1, "embedding": [1.0] * 384}]}), "0 vectors to 1 texts"),
        ((200, {"data": [{"index": 0, "embedding": [1e-30] * 384}]}), "no direction"),
        ((200, {"embeddings": None}), "no list of vectors"),
        ((200, {"embeddings": 5}), "no list of vectors"),
        ((200, {"data": [{"index": 0, "embedding": [0.0] * 384}]}), "no direction"),
        ((200, {"data": [{"index": 0, "embedding": [float("nan")] * 384}]}), "no direction"),
        ((200, {"data": [{"index": 0, "embedding": "AAAA"}]}), "no list of vectors|vectors"),
        ((200, "hello"), "no list of vectors"),
        ((400, {"error": "input is too long"}), "too long.*KB_CHUNK_TOKENS"),
    ],
)
def test_a_bad_answer_is_an_error_that_says_so(start: StartServer, answer: tuple[int, Any], said: str) -> None:
    server = start()
    embedder = opened(server.url)
    server.answer = lambda _: answer
    with pytest.raises(KBError, match=said) as raised:
        embedder.begin_query("a question")()
    assert isinstance(raised.value, InvalidRequest) == (answer[0] == 400)


def test_one_text_that_the_endpoint_cannot_embed_disturbs_no_other(start: StartServer) -> None:
    server = start()
    embedder = opened(server.url)
    embedder.start()
    server.refused = "poison"
    with pytest.raises(Unavailable, match="It embeds other texts") as raised:
        embedder.begin(["harmless", "poison"]).result()
    assert "endpoint_away" not in raised.value.details  # so the attempts of its job are counted
    assert embedder.ready
    assert len(embedder.begin(["harmless"]).result()) == 1


def test_the_reason_that_a_server_gives_is_shown(start: StartServer) -> None:
    server = start(protocol="ollama")
    server.answer = lambda _: (404, {"error": 'model "served" not found, try pulling it first'})
    with pytest.raises(Unavailable, match="try pulling it first"):
        opened(server.url)


@pytest.mark.parametrize("dimensions", [8, 64, 1024])
def test_vectors_may_have_any_number_of_dimensions(start: StartServer, dimensions: int) -> None:
    server = start()
    server.embed = bags_of_words(dimensions)
    embedder = opened(server.url)
    assert embedder.begin(TEXTS).result().shape == (len(TEXTS), dimensions)
    again = opened(server.url, recorded=(embedder.name, embedder.fingerprint))
    assert (again.dimensions, again.fingerprint) == (dimensions, embedder.fingerprint)


def test_a_model_that_tells_nothing_apart_is_refused(start: StartServer) -> None:
    server = start()
    server.embed = lambda texts: np.ones((len(texts), 16))
    with pytest.raises(Unavailable, match="same vector to every text"):
        opened(server.url)


def test_stopping_ends_a_request_that_is_not_answered(start: StartServer) -> None:
    server = start()
    embedder = opened(server.url)
    held, asked = threading.Event(), threading.Event()

    def hold(texts: Any) -> Any:
        asked.set()
        held.wait(60)
        return 200, {}

    server.answer = hold
    waiting = embedder.begin(["a text"])
    assert asked.wait(30)
    began = time.monotonic()
    embedder.close()
    with pytest.raises(Unavailable):
        waiting.result()
    assert time.monotonic() - began < 10
    held.set()


def test_passing_trouble_is_tried_again(start: StartServer) -> None:
    server = start()
    embedder = opened(server.url)

    def once(_: Any) -> tuple[int, Any]:
        server.answer = None
        return 503, {"error": "loading"}

    server.answer = once
    assert len(embedder.begin(TEXTS[:3]).result()) == 3
    assert embedder.ready


def test_while_it_is_away_calls_fail_at_once_and_then_go_on(start: StartServer) -> None:
    server = start()
    embedder = opened(server.url)
    embedder.start()
    server.close()
    with pytest.raises(Unavailable, match=r"cannot be reached.*Nothing is lost"):
        embedder.begin_query("a question")()
    assert (embedder.ready, bool(embedder.problem)) == (False, True)
    again = server.again()
    eventually(lambda: embedder.ready)
    assert len(embedder.begin(TEXTS[:2]).result()) == 2
    assert embedder.problem is None
    again.close()


def test_another_model_behind_the_same_address_is_never_mixed_in(start: StartServer) -> None:
    server = start()
    embedder = opened(server.url)
    embedder.start()
    server.close()
    with pytest.raises(Unavailable):
        embedder.begin_query("a question")()
    other = server.again()
    other.embed = lambda texts: [[float(len(text)), *[1.0] * 383] for text in texts]
    eventually(lambda: "another model" in (embedder.problem or ""))
    with pytest.raises(Unavailable, match="serve --reindex"):
        embedder.begin(TEXTS[:2]).result()
    other.close()


def test_a_model_that_was_replaced_without_an_absence_is_noticed(start: StartServer) -> None:
    server = start()
    embedder = opened(server.url)
    server.embed = bags_of_words(384)
    with pytest.raises(Unavailable, match="another model"):
        embedder.begin(TEXTS[:2]).result()
    with pytest.raises(Unavailable, match="another model"):
        embedder.begin_query("a question")()


def test_the_same_model_is_recognised_although_it_rounds_differently(start: StartServer) -> None:
    server = start()
    first = opened(server.url)
    plain = server.embed
    server.embed = lambda texts: np.asarray(plain(texts)).astype(np.float16)
    assert opened(server.url, recorded=(first.name, first.fingerprint)).fingerprint == first.fingerprint
    server.embed = lambda texts: np.asarray(plain(texts))[:, ::-1]
    assert opened(server.url, recorded=(first.name, first.fingerprint)).fingerprint != first.fingerprint


def test_with_an_index_it_starts_without_the_endpoint_and_without_one_it_does_not(start: StartServer) -> None:
    server = start()
    first = opened(server.url)
    server.close()
    with pytest.raises(Unavailable, match="cannot be reached"):
        opened(server.url)
    with pytest.raises(Unavailable):  # the index is of a model in a folder
        opened(server.url, recorded=("all-MiniLM-L6-v2", "d9f025004aef24ee"))
    later = opened(server.url, recorded=(first.name, first.fingerprint))
    assert (later.ready, later.dimensions, later.fingerprint) == (False, 384, first.fingerprint)


def test_a_key_that_cannot_be_sent_is_refused_without_showing_it() -> None:
    for key in ("SECRET\nKEY", "ключ"):
        with pytest.raises(InvalidRequest, match="KB_EMBED_API_KEY") as raised:
            opened("http://127.0.0.1:1", key=key)
        assert key not in raised.value.message


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http://127.0.0.1:abc",
        "http://127.0.0.1:99999",
        "http://user:password@127.0.0.1:1",
        "http://127.0.0.1:1/?key=x",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="KB_EMBED_URL"):
        opened(url)
