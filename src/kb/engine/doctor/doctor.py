"""The doctor: runs every check, in the order in which mending helps.

Nothing is assumed: each check looks, and one that cannot look says why. Mending drops what nothing can reach and
makes again what can be made from the text; a document is never deleted.
"""

import logging
import threading

from kb.core.errors import KBError, Unavailable
from kb.core.status import Check, Diagnosis
from kb.engine.doctor.files import FileChecks
from kb.engine.doctor.finding import Examination, Finding, looking
from kb.engine.doctor.indexed import IndexChecks
from kb.engine.doctor.stored import StoreChecks

log = logging.getLogger(__name__)

PATIENCE = 30.0  # seconds to wait for another examination


class Doctor:
    def __init__(self, stored: StoreChecks, indexed: IndexChecks, files: FileChecks) -> None:
        self._indexed = indexed
        self._one_at_a_time = threading.Lock()
        # What is dropped first need not be made again.
        self._examinations: dict[str, Examination] = {
            "database file": stored.file,
            "references": stored.references,
            "unpublished chunks": stored.unpublished,
            "stored rows": stored.rows,
            "passages": stored.passages,
            "ids": looking(stored.ids),
            "full-text index": indexed.fulltext,
            "full-text rows missing": indexed.fulltext_missing,
            "full-text rows of no chunk": indexed.fulltext_stray,
            "vectors missing": indexed.vectors_missing,
            "vectors of no chunk": indexed.vectors_stray,
            "vectors of other languages missing": indexed.static_missing,
            "chunk counts": stored.chunk_counts,
            "links": stored.links,
            "metadata": stored.metadata,
            "metadata limits": looking(stored.metadata_limits),
            "originals missing": looking(files.missing),
            "originals damaged": looking(files.damaged),
            "originals of no document": files.stray,
            "disk space": looking(files.disk_space),
            "model files": looking(files.model),
            "sandbox": looking(files.sandbox),
            "index in memory": indexed.memory,
        }

    def examine(self, *, fix: bool = False) -> Diagnosis:
        if fix:
            self._indexed.check_ready()
        if not self._one_at_a_time.acquire(timeout=PATIENCE):
            raise Unavailable("The database is being mended or looked at already. Try again when that is done.")
        try:
            checks = [tried(name, examination, fix) for name, examination in self._examinations.items()]
        finally:
            self._one_at_a_time.release()
        return Diagnosis(all(check.ok for check in checks), checks)


def tried(name: str, examination: Examination, fix: bool) -> Check:
    """A check that cannot be made is a problem too."""
    try:
        finding = examination(fix)
    except KBError as error:
        finding = Finding(1, error.message)
    except Exception as error:  # what is damaged may break anything that looks at it
        log.exception("the check of %s broke", name)
        finding = Finding(1, f"This cannot be checked, so something is damaged ({type(error).__name__}: {error}).")
    ok = finding.fixed >= finding.problems
    return Check(name, ok, finding.problems, finding.message, finding.fixed)
