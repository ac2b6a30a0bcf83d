"""An archive of `kb export`, opened for reading: documents as lines of JSON, and their originals."""

import hashlib
import json
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from kb.core.errors import InvalidRequest, NotFound
from kb.core.types import Json

LINES = "documents.jsonl"
BLOCK = 2**20
NEEDED = ("title", "doc_type", "content_hash", "tags", "metadata", "source_path", "filename", "text")


class Exported:
    """The archive decides no path: originals are copied to temporary files."""

    def __init__(self, path: str, tar: tarfile.TarFile) -> None:
        self.path = path
        self._tar = tar
        self._members = {member.name: member for member in tar.getmembers() if member.isfile()}
        if LINES not in self._members:
            hint = " It is a backup: use kb restore." if "manifest.json" in self._members else ""
            raise InvalidRequest(f"{path} is no archive of kb export: it has no {LINES}.{hint}")

    def count(self) -> int:
        with self._open(LINES) as file:
            return sum(1 for line in file if line.strip())

    def documents(self) -> Iterator[Json]:
        """The documents in the order of their ids; an invalid line ends the import."""
        with self._open(LINES) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    document = json.loads(line)
                    missing = [name for name in NEEDED if name not in document]
                except (ValueError, TypeError) as wrong:
                    raise InvalidRequest(f"Line {number} of {LINES} in {self.path} is not JSON: {wrong}.") from wrong
                if missing:
                    raise InvalidRequest(f"Line {number} of {LINES} in {self.path} has no {missing[0]!r}.")
                yield document

    @contextmanager
    def original(self, sha256: str) -> Iterator[str]:
        """A temporary file with the bytes of an original."""
        name = f"originals/{sha256[:2]}/{sha256}"
        if name not in self._members:
            raise NotFound("its original is not in the archive")
        digest = hashlib.sha256()
        with self._open(name) as source, tempfile.NamedTemporaryFile(prefix="kb-import-") as copy:
            while block := source.read(BLOCK):
                digest.update(block)
                copy.write(block)
            copy.flush()
            if digest.hexdigest() != sha256:
                raise InvalidRequest("its original is damaged: the bytes do not have the hash that names them")
            yield copy.name

    def _open(self, name: str) -> IO[bytes]:
        content = self._tar.extractfile(self._members[name])
        assert content is not None
        return content


@contextmanager
def opened(path: str) -> Iterator[Exported]:
    try:
        with tarfile.open(path) as tar:
            yield Exported(path, tar)
    except FileNotFoundError as missing:
        raise NotFound(f"There is no file {path}.") from missing
    except (tarfile.TarError, EOFError) as broken:
        raise InvalidRequest(f"{path} is no complete archive of kb export: {broken}.") from broken
    except OSError as wrong:
        raise InvalidRequest(f"{path} cannot be read: {wrong.strerror}.") from wrong
