"""An embedder whose vectors come from an endpoint of the user's own (KB_EMBED_URL).

kb knows nothing of the model behind it. So it embeds a few fixed texts first: they tell how many dimensions a vector
has, what cosine texts have that have nothing to do with each other, and whether it is still the model that the index
was made with. The first of them goes with every request for passages, so that no other model's vectors are mixed in.
The chunker counts tokens with the tokenizer of kb's own model.
"""

import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kb.core.errors import KBError, Unavailable
from kb.core.lru import LruCache
from kb.embedding.description import MINILM, FusionConstants, ModelDescription, ScoreConstants
from kb.embedding.embedder import QUERY_CACHE, unit
from kb.embedding.endpoint_client import Endpoint, EndpointClient
from kb.embedding.runtimes import Finish, Vectors
from kb.embedding.tokenizer import Tokenizer, Tokens

log = logging.getLogger(__name__)

TEXTS = 32  # in a request, at most
REQUESTS = 2  # at a time, for additions: the next one is on its way while the endpoint computes
QUESTIONS = 4  # at a time
PASSAGE_SECONDS = 120.0
QUESTION_SECONDS = 20.0
RETRY_SECONDS = 1.0  # between attempts to reach an endpoint that is away
TRUST_SECONDS = 5.0  # that questions rely on the last check of the model
MOST_UNRELATED = 0.99  # cosine of unrelated texts: with more, nothing can be told apart
SKETCH = 32  # numbers of which the sketch of a vector consists
SAME = 0.99  # cosine of two sketches of one model: servers round differently

# Texts that have nothing to do with each other.
PROBES = (
    "The ferry to the island leaves at seven in the morning.",
    "Sodium chloride dissolves in water and conducts electricity.",
    "The string quartet rehearses on Tuesdays in the old town hall.",
    "A compiler turns source code into instructions for a processor.",
    "Goats prefer shrubs to grass and climb trees for leaves.",
    "The tax return has to be filed before the end of July.",
    "Her grandmother knitted a red scarf for every child.",
    "Glaciers shape valleys by grinding the rock beneath them.",
)


class EndpointEmbedder:
    """`recorded` is the name and the fingerprint of the model that the index was made with, if there is an index.

    With it the engine starts although the endpoint is away. While it is away, every call fails at once, and a thread
    waits for it to come back.
    """

    def __init__(self, endpoint: Endpoint, tokenizer: Tokenizer, recorded: tuple[str, str] | None) -> None:
        self._client = EndpointClient(endpoint)
        self._url = endpoint.url
        self.tokenizer = tokenizer
        self.query_cache: LruCache[str, Vectors] = LruCache(QUERY_CACHE)
        self._problem: Unavailable | None = None
        self._away = threading.Event()
        self._checked = 0.0  # when the endpoint last showed that it has the model of the index
        self._bulk = ThreadPoolExecutor(REQUESTS, "embed")
        self._queries = ThreadPoolExecutor(QUESTIONS, "query")
        self.name, self.fingerprint = recorded or ("", "")
        self._model = endpoint.model or self.name  # what the endpoint is asked for
        try:
            self._model = self._client.model()
            probes = self._probes()
        except Unavailable as wrong:
            if not _dimensions(self.fingerprint):
                raise Unavailable(
                    f"{wrong.message} A new index needs it: start it first, or unset KB_EMBED_URL."
                ) from wrong
            self.description = _described(self.name, _dimensions(self.fingerprint), 0.0)
            self._lost(wrong)
            return
        if not _alike(found := _fingerprint(probes[0]), self.fingerprint):
            self.name, self.fingerprint = self._model, found
        self._know(probes)

    def start(self) -> None:
        """Watch for the endpoint to come back, whenever it is away."""
        threading.Thread(target=self._watch, name="endpoint", daemon=True).start()

    def close(self) -> None:
        """End what is under way: it fails, as if the endpoint were away."""
        self._client.close()

    def wait(self) -> None:
        """Raise an error if the endpoint does not answer."""
        if self._away.is_set():
            self._verify()

    def of(self, fingerprint: str) -> "EndpointEmbedder":  # noqa: ARG002 - it is never replaced
        return self

    @property
    def dimensions(self) -> int:
        return self.description.dimensions

    @property
    def max_tokens(self) -> int:
        return self.description.max_tokens

    @property
    def ready(self) -> bool:
        return not self._away.is_set()

    @property
    def problem(self) -> str | None:
        """Why the endpoint cannot be used, while it cannot."""
        return self._problem.message if self._problem else None

    @property
    def cached_queries(self) -> int:
        return len(self.query_cache)

    @property
    def device(self) -> str:
        return f"endpoint {self._url}"

    def begin(self, texts: Sequence[str]) -> "Future[Vectors]":
        return self._bulk.submit(self._passages, list(texts))

    def begin_query(self, text: str, tokens: Tokens | None = None) -> Finish:  # noqa: ARG002 - it has its own tokens
        if self._problem is None and (known := self.query_cache.get(text)) is not None:
            return lambda: known
        return self._queries.submit(self._query, text).result

    def _passages(self, texts: Sequence[str]) -> Vectors:
        groups = [texts[at : at + TEXTS] for at in range(0, len(texts), TEXTS)]
        embedded = [self._embed(group, PASSAGE_SECONDS, repeat=True, check=True) for group in groups]
        return np.concatenate([np.empty((0, self.dimensions), np.float32), *embedded])

    def _query(self, text: str) -> Vectors:
        check = time.monotonic() - self._checked > TRUST_SECONDS
        vector: Vectors = self._embed([text], QUESTION_SECONDS, repeat=False, check=check)[0]
        vector.setflags(write=False)
        self.query_cache.put(text, vector)
        return vector

    def _embed(self, texts: Sequence[str], seconds: float, *, repeat: bool, check: bool) -> Vectors:
        """With `check`, a probe goes along, which shows that the model is still that of the index."""
        if self._problem is not None:
            raise self._problem
        # Some servers refuse a text of white space only, which means nothing to all of them.
        sent = [text if text.strip() else "-" for text in texts]
        try:
            vectors = self._client.embed(self._model, [*PROBES[: int(check)], *sent], seconds=seconds, repeat=repeat)
        except Unavailable as wrong:
            raise self._examined(wrong) from wrong
        vectors = unit(vectors)
        if check:
            self._check(vectors[0])
            vectors = vectors[1:]
        if vectors.shape[1] != self.dimensions:
            raise self._lost(self._another(f"{vectors.shape[1]} dimensions in place of {self.dimensions}"))
        return vectors

    def _examined(self, wrong: Unavailable) -> Unavailable:
        """What to raise after a request failed: the endpoint is away, or it cannot do this one."""
        try:
            self._verify()
        except KBError:
            return self._lost(wrong)
        return Unavailable(f"{wrong.message} It embeds other texts. Try again; if it stays so, its log may say why.")

    def _probes(self) -> Vectors:
        return unit(self._client.embed(self._model, PROBES, seconds=QUESTION_SECONDS, repeat=False))

    def _check(self, probe: Vectors) -> None:
        if not _alike(_fingerprint(probe), self.fingerprint):
            raise self._lost(self._another("other vectors than those the index was made with"))
        self._checked = time.monotonic()

    def _know(self, probes: Vectors) -> None:
        """Take from the probes what kb has to know of the model."""
        cosines = probes @ probes.T
        unrelated = float(cosines[~np.eye(len(PROBES), dtype=bool)].mean())
        if unrelated > MOST_UNRELATED:
            raise self._client.unavailable("gives nearly the same vector to every text: that is no embedding model")
        self.description = _described(self.name, probes.shape[1], max(unrelated, 0.0))
        self._checked = time.monotonic()
        log.info("%s at %s: %d dimensions, unrelated texts at %.2f", self.name, self._url, probes.shape[1], unrelated)

    def _verify(self) -> None:
        """Make sure, after an absence, that the endpoint has the model of the index; else an error."""
        probes = self._probes()
        if not _alike(_fingerprint(probes[0]), self.fingerprint):
            raise self._another("other vectors than those the index was made with")
        self._know(probes)
        self._problem = None
        self._away.clear()

    def _lost(self, wrong: Unavailable) -> Unavailable:
        """Note that the endpoint is away; return what calls raise until it is back."""
        if self._problem is None:
            log.warning("%s", wrong.message)
        self._problem = Unavailable(
            f"{wrong.message} Nothing is lost: additions wait for it, and searches by words alone (mode `fts`) work.",
            endpoint_away=True,
        )
        self.query_cache.clear()  # the last few may be of another model
        self._away.set()
        return self._problem

    def _another(self, gives: str) -> Unavailable:
        return self._client.unavailable(
            f"gives {gives}: it has another model by now. Put the old one back, or make the index anew with "
            "`kb serve --reindex`"
        )

    def _watch(self) -> None:
        pause = threading.Event()
        while self._away.wait():
            pause.wait(RETRY_SECONDS)
            try:
                self._verify()
            except Unavailable as wrong:
                self._lost(wrong)
            except Exception as wrong:  # noqa: BLE001 - whatever it answers, it is asked again
                self._lost(self._another(f"an error ({wrong})"))
            else:
                log.info("the embedding endpoint %s answers again", self._url)


def _described(name: str, dimensions: int, unrelated: float) -> ModelDescription:
    """What kb takes for granted of a model that it does not know, given the cosine of unrelated texts.

    It is taken to read every language. The other constants are those of kb's own model, stretched to the part of the
    cosines that means something: for gte-small that comes near to what was fitted (docs/decisions/023).
    """
    stretch = 1 / (1 - unrelated)
    base, per_cosine, per_coverage = ScoreConstants().both
    base_alone, per_cosine_alone = ScoreConstants().meaning
    return ModelDescription(
        name=name,
        dimensions=dimensions,
        max_tokens=MINILM.max_tokens,
        pooling="mean",
        fusion=replace(FusionConstants(), unrelated=unrelated, blind=-1.0, seeing=0.0),
        score=replace(
            ScoreConstants(),
            both=(base - per_cosine * unrelated * stretch, per_cosine * stretch, per_coverage),
            meaning=(base_alone - per_cosine_alone * unrelated * stretch, per_cosine_alone * stretch),
        ),
    )


def _fingerprint(probe: Vectors) -> str:
    """Dimensions and a sketch of a probe's vector, so that two can be compared although servers round differently."""
    sketch = probe @ _signs(len(probe))
    rounded = np.rint(sketch * (127 / max(float(np.abs(sketch).max()), 1e-12))).astype(np.int8)
    return f"{len(probe)}-{rounded.tobytes().hex()}"


def _signs(dimensions: int) -> NDArray[np.float32]:
    """A projection to few numbers, the same in every process: each sums all numbers of a vector with other signs."""
    mixed = np.arange(1, dimensions + 1)[:, None] * 2_654_435_761 + np.arange(1, SKETCH + 1) * 40_503
    mixed = (mixed ^ (mixed >> 13)) * 2_246_822_519 & 0xFFFFFFFF
    return np.where(mixed >> 16 & 1, 1, -1).astype(np.float32)


def _dimensions(fingerprint: str) -> int:
    """The dimensions that a fingerprint of an endpoint names; 0 for that of another model."""
    dimensions, dash, _ = fingerprint.partition("-")
    return int(dimensions) if dash and dimensions.isdigit() else 0


def _alike(one: str, other: str) -> bool:
    if _dimensions(one) != _dimensions(other) or not _dimensions(one):
        return False
    first, second = (
        unit(np.frombuffer(bytes.fromhex(each.partition("-")[2]), np.int8).astype(np.float32)) for each in (one, other)
    )
    return float(first @ second) >= SAME
