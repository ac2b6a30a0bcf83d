"""Restore a backup into a data folder: verified completely, then put in place as a whole or not at all.

Nothing in the archive decides where a file goes: only names that a backup has are taken, and only plain files.
"""

import hashlib
import json
import os
import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kb.core.errors import Conflict, InvalidRequest, NotFound, StorageFull
from kb.store.backup.archive import DATABASE, FORMAT, MANIFEST
from kb.store.backup.tar import BLOCK, TarMember
from kb.store.folder import COMPANIONS, LOCK, REPLACED, RESTORED, DataFolder, remove, sync_folder
from kb.store.sqlite import inspect

NAMES = re.compile(r"kb\.db|manifest\.json|originals/([0-9a-f]{2})/\1[0-9a-f]{62}")
# Where a backup is unpacked and verified; a leftover folder of this name can be removed.
UNPACKED = f"{RESTORED}.part"
# What an engine keeps in its folder. Anything else belongs to the user and is never removed.
OWN = {DATABASE, "originals", LOCK, RESTORED, UNPACKED, REPLACED, f"{REPLACED}.part", *COMPANIONS}


@dataclass(frozen=True, slots=True)
class Restored:
    kb_version: str  # that made the backup
    created_at: str
    originals: int
    missing: int  # originals that the backup could not hold
    damaged: list[int]  # documents whose original is damaged in the backup: it is left out
    damage: list[str]  # of the database, a sentence each


def restore(archive: Path, data_dir: Path, *, force: bool = False) -> Restored:
    """Put a backup into place. A folder that holds something is replaced only with `force`."""
    data_dir = data_dir.absolute()
    with storage_errors(data_dir), locked(data_dir, force), unpacked_in(data_dir) as part:
        done = unpack(archive, part)
        part.rename(data_dir / RESTORED)  # from here on the restore is completed, also after a crash
        sync_folder(data_dir)
    folder = DataFolder(data_dir)
    with suppress(Conflict):  # an engine that started meanwhile puts it into place
        folder.open()
        folder.close()
    return done


def unpack(archive: Path, folder: Path) -> Restored:
    """Extract and verify; raises InvalidRequest when anything is not as the manifest says."""
    extracted: dict[str, TarMember] = {}
    with opened(archive) as file:
        try:
            with tarfile.open(fileobj=file, mode="r|*") as tar:
                for info in tar:
                    content = plain_file(tar, info, extracted)
                    extracted[info.name] = TarMember(info.name, info.size, write(folder / info.name, content))
        except (tarfile.TarError, EOFError) as broken:
            raise InvalidRequest(f"{archive.name} is not a complete backup: {broken}. Nothing was changed.") from broken
    about = read_manifest(folder / MANIFEST)
    extracted.pop(MANIFEST, None)
    damaged = verified({member["name"]: TarMember(**member) for member in about["members"]}, extracted)
    for name in damaged:
        (folder / name).unlink()
    (folder / MANIFEST).unlink()
    database = folder / DATABASE
    inspect.check(database)
    damaged += about.get("damaged", [])
    owners = {id_ for name in damaged for id_ in inspect.documents_with(database, name.rpartition("/")[2])}
    for inner in (*folder.glob("originals/*"), *folder.glob("originals"), folder):
        sync_folder(inner)
    return Restored(
        about["kb_version"],
        about["created_at"],
        len(list(folder.glob("originals/*/*"))),
        len(about["missing"]),
        sorted(owners),
        inspect.damage(database),
    )


def opened(archive: Path) -> IO[bytes]:
    try:
        return archive.open("rb")
    except OSError as wrong:
        raise NotFound(f"{archive} cannot be read: {wrong.strerror}. Nothing was changed.") from wrong


def plain_file(tar: tarfile.TarFile, info: tarfile.TarInfo, known: dict[str, TarMember]) -> IO[bytes]:
    content = tar.extractfile(info) if info.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not info.sparse else None
    if content is None or not NAMES.fullmatch(info.name) or info.name in known:
        raise InvalidRequest(f"The archive holds {info.name[:200]!r}, which no backup does. Nothing was changed.")
    return content


def write(path: Path, content: IO[bytes]) -> str:
    """Copy to a synced file. Return the sha256 of the bytes."""
    digest = hashlib.sha256()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        while block := content.read(BLOCK):
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def read_manifest(path: Path) -> dict[str, Any]:
    try:
        about: dict[str, Any] = json.loads(path.read_bytes())
        known = about["format"] == FORMAT
    except (FileNotFoundError, ValueError, KeyError, TypeError) as wrong:
        raise InvalidRequest("The backup has no manifest: it is not complete. Nothing was changed.") from wrong
    if not known:
        raise InvalidRequest("The backup was made by a newer kb. Upgrade kb; nothing was changed.")
    return about


def verified(wanted: dict[str, TarMember], got: dict[str, TarMember]) -> list[str]:
    """The names of damaged originals. Any other difference from the manifest raises InvalidRequest."""
    wrong = sorted(wanted.keys() ^ got.keys())
    if DATABASE not in got or got[DATABASE] != wanted.get(DATABASE):
        wrong.append(DATABASE)
    if wrong:
        raise InvalidRequest(
            f"{len(wrong)} files of the backup are missing or damaged, {wrong[0]} among them. Nothing was changed. "
            "Take another backup."
        )
    return [name for name, member in got.items() if name != DATABASE and not name.endswith(member.sha256)]


@contextmanager
def locked(data_dir: Path, force: bool) -> Iterator[None]:
    """Hold the folder's lock, so that no engine uses it meanwhile."""
    there = {entry.name for entry in data_dir.iterdir()} if data_dir.exists() else set()
    if not there:
        yield
        return
    if there - {LOCK} and not force:
        raise Conflict(f"{data_dir} is not empty. Name another folder, or replace what is there with --force.")
    if foreign := sorted(there - OWN):
        raise InvalidRequest(f"{data_dir / foreign[0]} is not kb's, and restoring would remove it. Move it away first.")
    lock = DataFolder(data_dir)
    lock.open()
    try:
        yield
    finally:
        lock.close()


@contextmanager
def unpacked_in(data_dir: Path) -> Iterator[Path]:
    """An empty folder inside the data folder. An error removes it, and the data folder too if that is new."""
    created = [folder for folder in (data_dir, *data_dir.parents) if not folder.exists()]
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = data_dir / UNPACKED
    try:
        remove(part)
        part.mkdir(mode=0o700)
        yield part
    except BaseException:
        remove(part)
        for folder in created:
            folder.rmdir()
        raise


@contextmanager
def storage_errors(data_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as wrong:
        where = f" ({wrong.filename})" if wrong.filename else ""
        raise StorageFull(
            f"The backup cannot be restored to {data_dir}: {wrong.strerror or wrong}{where}. Nothing was changed."
        ) from wrong
