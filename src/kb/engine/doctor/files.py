"""Checks of what lies beside the database: originals, disk, model, sandbox."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kb.core.errors import NotFound
from kb.embedding import model
from kb.engine.doctor.finding import Finding, found
from kb.ingest.sandbox import confine
from kb.store import health
from kb.store.backend import Database
from kb.store.originals import Originals, in_use


@dataclass(frozen=True)
class FileChecks:
    _database: Database
    _originals: Originals
    _model_dir: Callable[[], Path | None]

    def missing(self) -> Finding:
        with self._database.read() as tx:
            files = health.files(tx)
        gone = [row for row in files if not self._originals.has(row["content_hash"])]
        lost = [row["id"] for row in gone if row["ours"]]
        if gone and not lost:
            return Finding(
                message=f"{len(gone)} documents came from v2 without their originals; only their text is kept."
            )
        return found(lost, "The originals of {n} documents are gone: add those files again; first {first}.", 0)

    def damaged(self) -> Finding:
        with self._database.read() as tx:
            files = health.files(tx)
        damaged = [row["id"] for row in files if self._is_damaged(row["content_hash"])]
        message = "The originals of {n} documents changed on the disk: add those files again; first {first}."
        return found(damaged, message, 0)

    def _is_damaged(self, sha256: str) -> bool:
        try:
            return not self._originals.is_sound(sha256)
        except NotFound:
            return False

    def stray(self, fix: bool) -> Finding:
        with self._database.write() as tx:
            stray = self._originals.orphans(tx, set(in_use(tx)))
            if fix:
                self._originals.drop(tx, stray)
        return found(stray, "{n} originals belong to no document.", len(stray) if fix else 0)

    def disk_space(self) -> Finding:
        self._originals.check()
        return Finding()

    def model(self) -> Finding:
        folder = self._model_dir()
        if folder is None:
            return Finding(message="Vectors come from an endpoint of your own: there are no files to check.")
        known = model.describe(folder).description
        if not known.files:
            return Finding(message="A model of your own: there is no pinned hash to compare it with.")
        if model.is_installed(folder, known):
            return Finding()
        return Finding(1, f"The files in {folder} are not those of {known.name}. {model.HOW_TO_INSTALL}.")

    def sandbox(self) -> Finding:
        """Say which protections this system lacks; that is no problem of the data."""
        return Finding(message=confine.shortfall() or Finding().message)
