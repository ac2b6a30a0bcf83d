"""The embedder of the model in use, which another model can replace while searches run."""

from collections.abc import Sequence
from concurrent.futures import Future

from kb.embedding.description import ModelDescription
from kb.embedding.embedder import StartingEmbedder
from kb.embedding.runtimes import Finish, Vectors
from kb.embedding.tokenizer import Tokenizer, Tokens


class CurrentEmbedder:
    """Stands for the embedder in use. Everything but a search can take whichever that is.

    A search takes the one that fits its index (`of`): when the model is replaced, index and embedder follow one after
    the other, and the next embedder is known before.
    """

    def __init__(self, embedder: StartingEmbedder) -> None:
        self._current = embedder
        self._next: StartingEmbedder | None = None

    def prepare(self, following: StartingEmbedder) -> None:
        """Make the next embedder known."""
        self._next = following

    def take_over(self) -> None:
        """Put the next embedder in the place of the current one."""
        assert self._next is not None
        self._current, self._next = self._next, None

    def of(self, fingerprint: str) -> StartingEmbedder | None:
        known = (self._current, self._next)
        return next((one for one in known if one is not None and one.fingerprint == fingerprint), None)

    def start(self) -> None:
        self._current.start()

    def close(self) -> None:
        self._current.close()

    @property
    def name(self) -> str:
        return self._current.name

    @property
    def description(self) -> ModelDescription:
        return self._current.description

    @property
    def fingerprint(self) -> str:
        return self._current.fingerprint

    @property
    def dimensions(self) -> int:
        return self._current.dimensions

    @property
    def max_tokens(self) -> int:
        return self._current.max_tokens

    @property
    def device(self) -> str:
        return self._current.device

    @property
    def ready(self) -> bool:
        return self._current.ready

    @property
    def problem(self) -> str | None:
        return self._current.problem

    @property
    def cached_queries(self) -> int:
        return self._current.cached_queries

    @property
    def tokenizer(self) -> Tokenizer:
        return self._current.tokenizer

    def begin(self, texts: Sequence[str]) -> "Future[Vectors]":
        return self._current.begin(texts)

    def begin_query(self, text: str, tokens: Tokens | None = None) -> Finish:
        return self._current.begin_query(text, tokens)
