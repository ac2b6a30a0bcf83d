"""An embedder that loads its model while the engine already listens.

The description of the model's folder is read at once, and an unusable folder is refused at once. Calls that need the
model itself wait until it is loaded.
"""

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from kb.core.errors import Unavailable
from kb.embedding import model
from kb.embedding.embedder import SentenceEmbedder, load
from kb.embedding.priority import Priority
from kb.embedding.runtimes import Finish, Vectors
from kb.embedding.tokenizer import Tokenizer, Tokens

log = logging.getLogger(__name__)

LOAD_SECONDS = 120


class WarmingEmbedder:
    def __init__(self, model_dir: Path, priority: Priority) -> None:
        self._model_dir = model_dir
        self._priority = priority
        files = model.describe(model_dir)
        self.description, self.fingerprint = files.description, files.fingerprint
        self.name = files.description.name
        self.dimensions, self.max_tokens = files.description.dimensions, files.description.max_tokens
        self._loaded = threading.Event()
        self._embedder: SentenceEmbedder | None = None
        self.problem: str | None = None  # why it could not be loaded

    def start(self) -> None:
        """Load in a thread that is no daemon: the runtime aborts a process that ends in the middle of loading."""
        threading.Thread(target=self._load, name="load-model").start()

    def close(self) -> None:
        """Nothing waits for anything outside this process."""

    @property
    def ready(self) -> bool:
        return self._embedder is not None

    @property
    def cached_queries(self) -> int:
        return len(self._embedder.query_cache) if self._embedder else 0

    @property
    def device(self) -> str:
        return self._embedder.device if self._embedder else "loading"

    @property
    def tokenizer(self) -> Tokenizer:
        return self._wait().tokenizer

    def begin(self, texts: Sequence[str]) -> "Future[Vectors]":
        return self._wait().begin(texts)

    def begin_query(self, text: str, tokens: Tokens | None = None) -> Finish:
        return self._wait().begin_query(text, tokens)

    def of(self, fingerprint: str) -> "WarmingEmbedder":  # noqa: ARG002 - `CurrentEmbedder` replaces it
        return self

    def wait(self) -> None:
        """Return when the model is loaded. Unavailable if it cannot be."""
        self._wait()

    def _load(self) -> None:
        try:
            self._embedder = load(self._model_dir, priority=self._priority)
        except Exception as error:  # any: otherwise the thread would end without a word
            log.exception("the embedding model could not be loaded")
            self.problem = f"The embedding model could not be loaded: {error}"
        finally:
            self._loaded.set()

    def _wait(self) -> SentenceEmbedder:
        if not self._loaded.wait(LOAD_SECONDS) or self._embedder is None:
            raise Unavailable(
                "The embedding model is not loaded. The engine's log says why; try again after `make setup`."
            )
        return self._embedder
