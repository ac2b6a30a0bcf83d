"""The vendored libraries are the ones that vendor.toml names."""

import hashlib
import re
import tomllib

from tools.vendor import VENDOR


def test_every_vendored_file_has_the_hash_that_is_written_down() -> None:
    libraries = tomllib.loads((VENDOR / "vendor.toml").read_text())["library"]
    named = {file["to"]: file["sha256"] for library in libraries for file in library["files"]}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDOR.iterdir()}
    found.pop("vendor.toml")
    assert found == named


def test_no_vendored_file_imports_from_elsewhere() -> None:
    for path in VENDOR.glob("*.js"):
        assert all(name.startswith("./") for name in re.findall(r'from"([^"]+)"', path.read_text()))
