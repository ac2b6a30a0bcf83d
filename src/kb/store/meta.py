"""What the index in this file was made with. Opening it with anything else is an error, never a mixed index."""

from dataclasses import asdict, dataclass

from kb.errors import KBError
from kb.store.backend import Transaction

SET = "INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


@dataclass(frozen=True, slots=True)
class IndexVersions:
    """Everything that decides what is in the index for a given text."""

    model: str  # name and fingerprint of the embedding model
    chunker: str  # version of the chunker and the size of its chunks
    context: str  # what is embedded beside the passage
    terms: str  # how text is segmented for the full text


def check(tx: Transaction, current: IndexVersions) -> None:
    """Record the versions in a new file; refuse a file that was made with others."""
    recorded = {row["key"]: row["value"] for row in tx.rows("SELECT key, value FROM meta WHERE key LIKE 'index.%'")}
    wanted = {f"index.{name}": value for name, value in asdict(current).items()}
    if not recorded:
        tx.run_many(SET, [{"key": key, "value": value} for key, value in wanted.items()])
        return
    differing = [
        f"{key.removeprefix('index.')} is {recorded.get(key)!r} in the file and {value!r} here"
        for key, value in wanted.items()
        if recorded.get(key) != value
    ]
    if differing:
        raise KBError(
            f"This knowledge base was indexed differently: {'; '.join(differing)}. Nothing was changed. Put the old "
            "setting back, or make the index anew with `kb reindex`."
        )
