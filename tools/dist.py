"""The wheels of an installation without a checkout, and the check that they are enough.

`python -m tools.dist build` makes them in `dist/`, out of a copy of the sources: kb with compiled kernels for this
platform, kb in pure Python, and the model from the verified files of this environment.

`python -m tools.dist check` installs them as a user would, by one command that names three extras, into an environment
without pip, and uses kb there with nothing else on the PATH: no compiler, no checkout.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from kb.core.settings import MODEL_PACKAGE, bundled_model_dir
from kb.embedding.description import MINILM, MULTILINGUAL
from kb.embedding.model import GRAPH, is_installed

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
MODEL_VERSION = "1.0.0"
EXTRAS = "kb-server[engine,mcp,model]"
SOURCES = ["pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"]
MODEL_PROJECT = f"""\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "kb-model-minilm"
version = "{MODEL_VERSION}"
description = "The embedding model {MINILM.name} for kb-server: data only, no code."
license = "Apache-2.0"
license-files = ["LICENSE"]
requires-python = ">=3.11"

[tool.hatch.build.targets.wheel]
packages = ["{MODEL_PACKAGE}"]
"""


def build() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="kb-dist-") as folder:
        checkout, model = Path(folder, "kb"), Path(folder, "model")
        checkout.mkdir()
        for name in SOURCES:
            shutil.copy2(ROOT / name, checkout)
        # A copy, since building removes the libraries of this checkout, and kb may be running from it.
        shutil.copytree(ROOT / "src", checkout / "src", ignore=shutil.ignore_patterns("__pycache__", "lib*.so"))
        _wheel(checkout, KB_BUILD="pure")
        _wheel(checkout)
        _model_project(model)
        _wheel(model)
    wheels = sorted(DIST.glob("*.whl"))
    for wheel in wheels:
        print(f"{wheel.stat().st_size / 2**20:7.1f} MB  dist/{wheel.name}")
    if len(wheels) < 3:
        sys.exit("A wheel is missing: without the compiler (lock/compiler.txt) there is none for this platform.")


def _wheel(project: Path, **environment: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(DIST)]
    subprocess.run(command, cwd=project, env=os.environ | environment, check=True, stdout=subprocess.DEVNULL)


def _model_project(folder: Path) -> None:
    source, package = bundled_model_dir(), folder / MODEL_PACKAGE
    if not is_installed(source):
        sys.exit(f"The files in {source} are not those of {MINILM.name}: run `make setup`.")
    multilingual = bundled_model_dir(MULTILINGUAL.name)
    if not is_installed(multilingual, MULTILINGUAL):
        sys.exit(f"The files in {multilingual} are not those of {MULTILINGUAL.name}: run `make setup`.")
    for name in (*MINILM.files, GRAPH):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, package / name)
    for name in MULTILINGUAL.files:
        (package / MULTILINGUAL.name).mkdir(exist_ok=True)
        shutil.copy(multilingual / name, package / MULTILINGUAL.name / name)
    (package / "__init__.py").write_text(f'"""The files of {MINILM.name}. kb finds them here and imports nothing."""\n')
    (folder / "pyproject.toml").write_text(MODEL_PROJECT)
    shutil.copy(ROOT / "LICENSE", folder)


def check() -> None:
    """Install from the wheels, then start, add, search and stop, each as a user would."""
    with tempfile.TemporaryDirectory(prefix="kb-dist-") as folder:
        home, environment = Path(folder, "home"), Path(folder, "environment")
        home.mkdir()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        begun = time.monotonic()
        install = ["install", "--quiet", "--disable-pip-version-check", "--no-warn-script-location"]
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", environment, *install, "--find-links", DIST, EXTRAS],
            check=True,
            stderr=subprocess.PIPE,
        )
        print(f"installed {EXTRAS} in {time.monotonic() - begun:.0f} s, {_megabytes(environment):.0f} MB")
        kb = Installed(environment, home)
        try:
            kb("up", "--detach")
            kb("addnote", "The boiler was serviced in March by Anna.")
            found = kb("search", "who looked after the heating")
            status = kb("status")
        finally:
            kb("down")
    if "boiler" not in found or "compiled" not in status or MINILM.name not in status:
        sys.exit(f"It does not work from the wheels:\n{found}\n{status}")
    print("kb up, addnote, search, status and down work there, with compiled kernels and the model of the wheel.")


class Installed:
    """Runs the installed `kb` with an empty home and nothing else on the PATH."""

    def __init__(self, environment: Path, home: Path) -> None:
        self._kb = environment / "bin" / "kb"
        ports = {name: str(_free_port()) for name in ("KB_PORT", "KB_MCP_PORT")}
        self._environment = {"HOME": str(home), "PATH": str(environment / "bin"), **ports}

    def __call__(self, *words: str) -> str:
        done = subprocess.run([self._kb, *words], env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"kb {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
        print(f"  kb {words[0]}: {(done.stdout.strip() or 'done').splitlines()[0]}")
        return done.stdout


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _megabytes(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()) / 2**20


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.dist", description=__doc__)
    parser.add_argument("action", choices=["build", "check"])
    {"build": build, "check": check}[parser.parse_args(arguments).action]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
