"""What the index in this file was made with. Opening it with anything else is an error, never a mixed index."""

from dataclasses import asdict, dataclass

from kb.core.errors import KBError
from kb.store.backend import Transaction

SET = "INSERT INTO meta (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value"

MODEL = "SELECT value FROM meta WHERE key = 'index.model'"


@dataclass(frozen=True, slots=True)
class IndexVersions:
    """Everything that decides what is in the index for a given text."""

    model: str  # name and fingerprint of the embedding model
    chunker: str  # version of the chunker and the size of its chunks
    context: str  # what is embedded beside the passage
    terms: str  # how text is segmented for the full text


def differences(tx: Transaction, current: IndexVersions) -> list[str]:
    """How the index in the file differs from what this process would make; a new file has none."""
    recorded = {row["key"]: row["value"] for row in tx.rows("SELECT key, value FROM meta WHERE key LIKE 'index.%'")}
    if not recorded:
        record(tx, current)
        return []
    return [
        f"{name} is {recorded.get(f'index.{name}')!r} in the file and {value!r} here"
        for name, value in asdict(current).items()
        if recorded.get(f"index.{name}") != value
    ]


def model(tx: Transaction) -> tuple[str, str] | None:
    """The name and the fingerprint of the model that the index was made with; None for a new file."""
    if (recorded := tx.value(MODEL)) is None:
        return None
    name, _, fingerprint = str(recorded).rpartition(" ")
    return name, fingerprint


def record(tx: Transaction, current: IndexVersions) -> None:
    tx.run_many(SET, [{"key": f"index.{name}", "value": value} for name, value in asdict(current).items()])


def check(tx: Transaction, current: IndexVersions) -> None:
    """Refuse a file whose index was made with anything else."""
    if differing := differences(tx, current):
        raise KBError(
            f"This knowledge base was indexed differently: {'; '.join(differing)}. Nothing was changed. Put the old "
            "setting back, or make the index anew with `kb serve --reindex`."
        )


def probe(tx: Transaction) -> None:
    """Read something small, which raises if the database cannot be read."""
    tx.value("SELECT count(*) FROM meta")
