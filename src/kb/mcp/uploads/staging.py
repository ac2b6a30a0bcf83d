"""Files on their way in: staged on disk, chunk by chunk, until they are whole and the engine takes them.

Nothing here survives a restart, by design. An upload is a folder with one file for each chunk, so chunks may come in
any order and twice; what is missing can be named. All of it lies in a private folder that is removed at the end, or at
the next start after a crash.
"""

import base64
import binascii
import fcntl
import os
import re
import secrets
import shutil
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from kb.core.errors import Conflict, InvalidRequest, NotFound, StorageFull, TooLarge, Unavailable
from kb.core.sizes import readable_size

CHUNK_BYTES = 2**20  # what is recommended
MAX_CHUNK_INDEX = 99_999
MAX_UPLOADS = 64
MAX_STAGED_BYTES = 4 * 2**30
PREFIX = "kb-mcp-uploads-"


@dataclass(slots=True)
class StagedUpload:
    id: str
    filename: str
    total_size: int
    tags: list[str]
    folder: Path
    token: str  # the secret part of the upload address
    touched: float
    sizes: dict[int, int] = field(default_factory=dict)  # bytes of each chunk that is here
    whole: bool = False  # the bytes came at once, through the upload address
    busy: bool = False  # being sent to the engine

    @property
    def received(self) -> int:
        return sum(self.sizes.values())

    def touch(self) -> None:
        self.touched = time.monotonic()

    def missing(self) -> list[int]:
        """Chunks before the last one that never came."""
        return [index for index in range(max(self.sizes, default=-1) + 1) if index not in self.sizes]

    def chunk(self, index: int) -> Path:
        return self.folder / f"{index:06}"


class Uploads:
    """The uploads in progress. An upload without activity for `idle_seconds` is dropped."""

    def __init__(self, idle_seconds: int) -> None:
        self.idle_seconds = idle_seconds
        self._uploads: dict[str, StagedUpload] = {}
        sweep()
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _locked(self._folder)

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)

    def start(self, filename: str, total_size: int, tags: list[str], limit: int) -> StagedUpload:
        """Begin an upload of exactly this size; `limit` is the engine's, in bytes."""
        self.expire()
        name = re.sub(r"[\x00-\x1f\x7f]", "", filename.replace("\\", "/").rpartition("/")[2]).strip()
        if not name:
            raise InvalidRequest(f"filename is {filename[:100]!r}, which names no file. Send one such as report.pdf.")
        if total_size > limit:
            raise TooLarge(
                f"The file of {readable_size(total_size)} is larger than {limit // 2**20} MB, the most that the engine "
                "takes.",
                max_file_mb=limit // 2**20,
            )
        announced = sum(upload.total_size for upload in self._uploads.values())
        if len(self._uploads) >= MAX_UPLOADS or announced + total_size > MAX_STAGED_BYTES:
            raise Unavailable("Too many uploads are under way. Finish some, or try again in a few minutes.")
        upload = StagedUpload(
            str(uuid.uuid4()),
            name,
            total_size,
            tags,
            self._folder / uuid.uuid4().hex,
            secrets.token_urlsafe(32),
            time.monotonic(),
        )
        with _disk():
            upload.folder.mkdir(mode=0o700)
        self._uploads[upload.id] = upload
        return upload

    def get(self, upload_id: str) -> StagedUpload:
        self.expire()
        upload = self._uploads.get(upload_id)
        if upload is None:
            raise NotFound(
                f"There is no upload {upload_id[:100]!r}: it was finished, was left alone for "
                f"{self.idle_seconds} seconds, or the server restarted. Begin again with kb_upload_start."
            )
        if upload.busy:
            raise Conflict("This upload is just being handed to the engine. Wait for kb_upload_finish to answer.")
        upload.touch()
        return upload

    def add_chunk(self, upload_id: str, index: int, data: str) -> tuple[StagedUpload, bool]:
        """Store one chunk; a chunk that came before is replaced. The answer says whether it did."""
        upload = self.get(upload_id)
        if upload.whole:
            raise Conflict("All bytes came through the upload_url already. Call kb_upload_finish now.")
        if index >= upload.total_size:
            raise InvalidRequest(
                f"chunk_index is {index}, but a file of {readable_size(upload.total_size)} cannot have that many "
                "chunks. Count chunks from 0."
            )
        raw = _decoded(data)
        room = upload.total_size - (upload.received - upload.sizes.get(index, 0))
        if len(raw) > room:
            raise InvalidRequest(
                f"Chunk {index} has {readable_size(len(raw) - room)} more than is left of the announced "
                f"{readable_size(upload.total_size)}. Send the right bytes for this index, or begin again with the "
                "right total_size."
            )
        again = index in upload.sizes
        with _disk():
            _write(upload.chunk(index), raw)
        upload.sizes[index] = len(raw)
        return upload, again

    def by_token(self, token: str) -> StagedUpload:
        """The upload that an upload address belongs to; one use only."""
        self.expire()
        for upload in self._uploads.values():
            if secrets.compare_digest(upload.token.encode(), token.encode()) and not upload.whole and not upload.busy:
                upload.touch()
                return upload
        raise NotFound("This upload address does not exist, was used already, or expired.")

    def take_whole(self, upload: StagedUpload, path: Path) -> None:
        """Take the whole file, which came at once, in place of all chunks."""
        for index in upload.sizes:
            upload.chunk(index).unlink(missing_ok=True)
        path.replace(upload.chunk(0))
        upload.sizes = {0: upload.total_size}
        upload.whole = True

    @asynccontextmanager
    async def assembled(self, upload: StagedUpload) -> AsyncIterator[Path]:
        """The path of the whole file. If a chunk is missing, the upload stays as it is, so that it can be sent."""
        missing = upload.missing()
        if missing:
            named = ", ".join(str(index) for index in missing[:20]) + (", ..." if len(missing) > 20 else "")
            raise InvalidRequest(
                f"Chunk {named} is missing: send it with kb_upload_chunk, then call kb_upload_finish again.",
                missing_chunks=missing[:1000],
            )
        if upload.received < upload.total_size:
            following = max(upload.sizes, default=-1) + 1
            raise InvalidRequest(
                f"{readable_size(upload.total_size - upload.received)} of {readable_size(upload.total_size)} are still "
                f"to come: chunk {following} is missing. Send it with kb_upload_chunk, then call kb_upload_finish "
                "again.",
                missing_chunks=[following],
            )
        path = upload.folder / "file"
        upload.busy = True
        try:
            with _disk():
                await anyio.to_thread.run_sync(_join, [upload.chunk(index) for index in sorted(upload.sizes)], path)
            yield path
        finally:
            upload.busy = False
            upload.touch()
            path.unlink(missing_ok=True)

    def drop(self, upload: StagedUpload) -> None:
        self._uploads.pop(upload.id, None)
        shutil.rmtree(upload.folder, ignore_errors=True)

    def expire(self) -> None:
        oldest = time.monotonic() - self.idle_seconds
        for upload in [u for u in self._uploads.values() if u.touched < oldest and not u.busy]:
            self.drop(upload)


def sweep() -> None:
    """Remove the folders of servers that crashed; a folder that is in use is locked."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            os.close(_locked(folder))
        except OSError:  # in use, or of another user
            continue
        shutil.rmtree(folder, ignore_errors=True)


def _locked(folder: Path) -> int:
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise
    return number


def _decoded(data: str) -> bytes:
    try:
        raw = base64.b64decode(re.sub(r"\s", "", data), validate=True)
    except (binascii.Error, ValueError) as wrong:
        raise InvalidRequest(
            f"data is not base64 ({wrong}). Send the chunk's raw bytes in standard base64, with its padding."
        ) from wrong
    if not raw:
        raise InvalidRequest("data is empty. Every chunk holds at least one byte.")
    return raw


def _write(path: Path, raw: bytes) -> None:
    part = path.with_suffix(".part")
    part.write_bytes(raw)
    part.replace(path)


def _join(chunks: list[Path], path: Path) -> None:
    if len(chunks) == 1:
        os.link(chunks[0], path)
        return
    with path.open("wb") as whole:
        for chunk in chunks:
            with chunk.open("rb") as part:
                shutil.copyfileobj(part, whole, 2**20)


@contextmanager
def _disk() -> Iterator[None]:
    try:
        yield
    except OSError as wrong:
        raise StorageFull(f"The upload cannot be stored: {wrong.strerror}.") from wrong
