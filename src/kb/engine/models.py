"""The embedding models of this engine: where each is, which one is in use, and how another takes its place."""

import logging
from dataclasses import dataclass
from pathlib import Path

from kb.core.errors import InvalidRequest, KBError, Unavailable
from kb.core.settings import MODELS, Settings, default_model_dir, own_model_dir
from kb.embedding.current import CurrentEmbedder
from kb.embedding.lazy import WarmingEmbedder
from kb.embedding.model import describe
from kb.embedding.priority import Priority
from kb.index.chunk_index import ChunkIndex
from kb.store import meta
from kb.store.backend import Database

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Models:
    _settings: Settings
    _database: Database
    _live: ChunkIndex
    _in_use: CurrentEmbedder
    _priority: Priority

    @property
    def fingerprint(self) -> str:
        return self._in_use.fingerprint

    def folder_in_use(self) -> Path | None:
        """The folder of the model in use; None if an endpoint has it."""
        return None if self._settings.embed_url else self._settings.model_folder(self._in_use.name)

    def check(self, model: str) -> None:
        """Raise an error for a model that kb does not know, that is not installed, or that cannot be switched to."""
        found = describe(self._folder(model)).description
        if found.name != model:  # by its name the engine finds it at its next start
            raise InvalidRequest(f"The model in {self._folder(model)} calls itself {found.name}. Give both one name.")

    def opened(self, model: str) -> WarmingEmbedder:
        """A model beside the one in use, loading."""
        embedder = WarmingEmbedder(self._folder(model), self._priority)
        embedder.start()
        return embedder

    def take_over(self, following: WarmingEmbedder) -> None:
        """Use this model, whose vectors the database has now. A search has both index and embedder of one model."""
        index = ChunkIndex(following.dimensions, model=following.fingerprint)
        index.load(self._database)
        self._in_use.prepare(following)
        self._live.take_over(index)
        self._in_use.take_over()
        log.info("%s is the model now", following.name)

    def follow(self) -> bool:
        """Take over the model that another engine switched to; return False if it is still the same."""
        with self._database.read() as tx:
            recorded = meta.model(tx)
        if recorded is None or recorded[1] == self._in_use.fingerprint:
            return False
        try:
            following = self.opened(recorded[0])
            following.wait()
        except KBError as wrong:
            behind = Unavailable(
                f"Another engine switched to the model {recorded[0]}, which this one cannot use: {wrong.message}",
                cannot_follow=True,
            )
            self._live.fall_behind(behind)
            raise behind from wrong
        self.take_over(following)
        return True

    def _folder(self, model: str) -> Path:
        if self._settings.embed_url:
            raise InvalidRequest(
                f"KB_EMBED_URL says that vectors come from {self._settings.embed_url}. Unset it, and make the index "
                "anew with `kb serve --reindex`."
            )
        if self._settings.has_own_model:
            raise InvalidRequest(
                f"KB_MODEL_DIR says that the model is the one in {self._settings.model_dir}. Unset it, put that folder "
                f"into {own_model_dir().parent}, and a switch is possible."
            )
        folder = default_model_dir(model)
        if model in MODELS or (Path(model).name == model and folder.is_dir()):
            return folder
        raise InvalidRequest(
            f"kb knows no model {model!r}; it knows {', '.join(MODELS)}, and what is in {own_model_dir().parent}."
        )
