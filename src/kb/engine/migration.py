"""`kb migrate`: move a knowledge base to another database, and prove with searches that it answers as before."""

import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from kb.core.errors import KBError
from kb.core.searches import SearchRequest
from kb.core.settings import Settings
from kb.embedding.embedder import Embedder
from kb.embedding.opening import open_embedder
from kb.embedding.priority import Priority
from kb.index import terms
from kb.index.chunk_index import ChunkIndex
from kb.search.keyword import KeywordIndex
from kb.search.searcher import Searcher
from kb.store import chunks, meta
from kb.store.folder import DataFolder
from kb.store.moving import Moved, move
from kb.store.open import Store, open_store

SEARCHES = 50
CLOSE = 1e-6  # scores that differ less are the same
WORDS = 8  # of a question
LARGEST_FILE_MB = 2**20  # what was accepted once is moved, whatever the limit is now


@dataclass(frozen=True, slots=True)
class Migration:
    source: str
    target: str
    moved: Moved
    searches: int  # that were compared


def migrate(settings: Settings, target_url: str, *, force: bool) -> Migration:
    """Copy everything to the database at this address. The old one stays as it is."""
    settings = replace(settings, max_file_mb=LARGEST_FILE_MB)
    folder = DataFolder(settings.data_dir)
    folder.open()
    with ExitStack() as opened:
        opened.callback(folder.close)
        source, target = (
            open_store(one, terms.index_terms) for one in (settings, replace(settings, database_url=target_url))
        )
        for store in (source, target):
            opened.callback(store.database.close)
        if source.location == target.location:
            raise KBError(f"{source.location} is where the knowledge base is already. Name another database with --to.")
        for store in (source, target):
            store.migrate()
        with source.database.read() as tx:
            recorded = meta.model(tx)
        embedder = open_embedder(settings, recorded, Priority())
        if recorded is not None and recorded != (embedder.name, embedder.fingerprint):
            raise KBError(
                f"The index was made with {recorded[0]}, and the settings say {embedder.name}. Set "
                "KB_MODEL_DIR or KB_EMBED_URL as the engine has them, and try again. Nothing was changed."
            )
        embedder.start()
        embedder.wait()
        moved = move(source, target, force=force)
        searches = compare(embedder, source, target)
    return Migration(source.location, target.location, moved, searches)


def compare(embedder: Embedder, source: Store, target: Store) -> int:
    """Ask both the same questions; return how many. Raises an error if any answer differs."""
    questions = some_questions(source)
    before, after = (answers(embedder, store, questions) for store in (source, target))
    for question, old, new in zip(questions, before, after, strict=True):
        same = [id_ for id_, _ in old] == [id_ for id_, _ in new]
        if not same or any(abs(a - b) > CLOSE for (_, a), (_, b) in zip(old, new, strict=True)):
            raise KBError(
                f"Everything was copied to {target.location}, but a search for {question!r} finds something else "
                "there. Do not use it; the old database is as it was."
            )
    return len(questions)


def some_questions(store: Store) -> list[str]:
    """Words from passages all over the knowledge base, the same ones each time."""
    with store.database.read() as tx:
        ids = chunks.live(tx).chunk_ids.tolist()
    chance = random.Random(SEARCHES)  # noqa: S311 - a sample, not a secret
    chosen = chunks.hits(store.database, chance.sample(ids, min(SEARCHES, len(ids)))).values()
    return [" ".join(passage.fields["text"].split()[:WORDS]) for passage in chosen]


def answers(embedder: Embedder, store: Store, questions: Sequence[str]) -> list[list[tuple[int, float]]]:
    """For each question, the passages that are found, and their scores."""
    index = ChunkIndex(embedder.dimensions)
    index.load(store.database)
    searcher = Searcher(store.database, index, KeywordIndex(), embedder)
    found = (searcher.search(SearchRequest(question)) for question in questions)
    return [[(hit.chunk_id, hit.score) for hit in one.hits] for one in found]
