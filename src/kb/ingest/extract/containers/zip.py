"""The entries of a ZIP."""

import os
import stat
import zipfile
from collections.abc import Callable
from functools import partial
from typing import IO

from kb.core.errors import JobFailure
from kb.ingest.extract.archive import BAD_ARCHIVE, ENCRYPTED_FLAG
from kb.ingest.extract.containers.entry import Entry, decoded_names, outcome_of, shown
from kb.ingest.extract.member import check_unpacked
from kb.ingest.extract.part import Outcome
from kb.ingest.extract.tools import Source

UTF8_FLAG = 0x800
OF_DOS = 0  # the system whose programs write backslashes
UNSPECIFIED = "cp437"  # what a name is in that does not say it


def zip_entries(source: Source) -> list[Entry]:
    file = source.open()
    try:
        archive = zipfile.ZipFile(file)
    except BAD_ARCHIVE as error:
        raise JobFailure("corrupt", f"The archive is cut off or damaged: {error}") from None
    listed = [info for info in archive.infolist() if not info.is_dir()]
    check_unpacked(os.fstat(file.fileno()).st_size, sum(info.file_size for info in listed))
    return [
        Entry(shown(path), outcome(info, path), opener(archive, info))
        for info, path in zip(listed, paths(listed), strict=True)
    ]


def opener(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return partial(archive.open, info)


def paths(listed: list[zipfile.ZipInfo]) -> list[str]:
    raw = [info.orig_filename.encode("utf-8" if info.flag_bits & UTF8_FLAG else UNSPECIFIED) for info in listed]
    return [
        name.replace("\\", "/") if info.create_system == OF_DOS else name
        for name, info in zip(decoded_names(raw, UNSPECIFIED), listed, strict=True)
    ]


def outcome(info: zipfile.ZipInfo, path: str) -> Outcome:
    if stat.S_ISLNK(info.external_attr >> 16):
        return Outcome("failed", "it is a link to another file, which is not followed")
    if info.flag_bits & ENCRYPTED_FLAG:
        return Outcome("failed", "it is encrypted: unpack it with its password, and add it by itself", "encrypted")
    return outcome_of(path)
