"""Bring the libraries of the page into src/kb/web/vendor, as vendor.toml names them.

    python -m tools.vendor

Each file is taken out of its npm package, which is verified by hash. Its imports are rewritten to the files beside it,
because a browser without an import map knows no bare names. A test compares every file with the hash in vendor.toml.
"""

import hashlib
import re
import tempfile
import tomllib
from pathlib import Path
from typing import IO, cast

from tools.npm import pack

VENDOR = Path(__file__).parent.parent / "src/kb/web/vendor"
FILES = {
    "preact": "./preact.js",
    "preact/hooks": "./hooks.js",
    "@preact/signals-core": "./signals-core.js",
    "@preact/signals": "./signals.js",
}
IMPORT = re.compile(r'from\s*"([^"./][^"]*)"')
SOURCE_MAP = re.compile(r"\n?//# sourceMappingURL=\S+\n?$")


def main() -> None:
    for library in tomllib.loads((VENDOR / "vendor.toml").read_text())["library"]:
        with tempfile.TemporaryDirectory() as folder:
            tar = pack(f"{library['package']}@{library['version']}", library["integrity"], Path(folder))
            for file in library["files"]:
                text = content(cast(IO[bytes], tar.extractfile(f"package/{file['from']}")))
                (VENDOR / file["to"]).write_text(text)
                digest = hashlib.sha256(text.encode()).hexdigest()
                print(f"{file['to']}: {digest}", "" if digest == file["sha256"] else "(vendor.toml says another)")


def content(file: IO[bytes]) -> str:
    """The file as the page uses it: imports by file name, no source map."""
    text = SOURCE_MAP.sub("\n", file.read().decode())
    return IMPORT.sub(lambda found: f'from"{FILES[found[1]]}"', text)


if __name__ == "__main__":
    main()
