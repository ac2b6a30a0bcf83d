"""How soon a note can be found: added with `wait`, then searched for at once, which must find it."""

import random
from collections.abc import Sequence

from benchmarks import texts
from benchmarks.engine import Connection
from benchmarks.latency import timed
from benchmarks.report import Section, median, percentile, verdict
from kb.embedding.embedder import SentenceEmbedder

GOAL_ABOVE_MS = 50.0
WAIT_SECONDS = 5


def measure(connection: Connection, embedder: SentenceEmbedder, count: int) -> Section:
    passages = texts.passages(count, 180, embedder.tokenizer)
    sentences = [" ".join(passage.split()[:20]) for passage in passages]
    rows = [
        _row("a note of 20 words", connection, embedder, sentences),
        _row("a note of 180 tokens", connection, embedder, passages),
    ]
    about = (
        f"{count} notes of each kind, one after the other: `POST /jobs?wait={WAIT_SECONDS}`, then a search in mode "
        "`fts` for a word that only this note has. Embedding: the same text in another process of the same machine, "
        "in turn with it. Times in milliseconds."
    )
    heads = ("", "added and found p50", "p95", "of it adding p50", "embedding p50", "above it", "goal")
    return Section("A new note is searchable", about, heads, rows)


def _row(label: str, connection: Connection, embedder: SentenceEmbedder, bodies: Sequence[str]) -> list[str]:
    chance = random.Random(label)
    totals, adds, embeddings, above = [], [], [], []
    for body in bodies:
        word = "".join(chance.choices("bcdfghjklmnpqrstvwxz", k=12))
        text = f"{body} {word}"
        embedding, _ = timed(lambda text=text: embedder.embed([text]))  # type: ignore[misc]
        adding, accepted = timed(lambda text=text: connection.add_note(text, wait=WAIT_SECONDS))  # type: ignore[misc]
        finding, answer = timed(lambda word=word: connection.search(word, mode="fts"))  # type: ignore[misc]
        found = [hit["document_id"] for hit in answer["results"]]
        if accepted["status"] != "completed" or found != [accepted["document_id"]]:
            raise RuntimeError(f"a note that was added is not found: {accepted}, {found}")
        totals.append(adding + finding)
        adds.append(adding)
        embeddings.append(embedding)
        above.append(adding + finding - embedding)
    return [
        label,
        f"{median(totals):.1f}",
        f"{percentile(totals, 0.95):.1f}",
        f"{median(adds):.1f}",
        f"{median(embeddings):.1f}",
        f"{median(above):.1f}",
        f"≤ {GOAL_ABOVE_MS:.0f}, {verdict(median(above) <= GOAL_ABOVE_MS)}",
    ]
