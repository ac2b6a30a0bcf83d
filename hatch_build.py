"""Compiles the parts of kb that are written in C while the package is built, with a compiler that comes as a wheel.

They are optional: without the compiler, without their sources, or with KB_BUILD=pure, the package has Python only,
which does the same more slowly. They are loaded by ctypes, so one wheel fits every version of Python.
"""

import importlib.util
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

X86 = platform.machine() == "x86_64"


class Library(NamedTuple):
    path: Path
    source: Path
    options: Sequence[str] = ()
    fits: bool = True  # this machine; elsewhere something else does its work


def encoder(precision: str) -> Library:
    products = f'-DPRODUCTS="encoder_{precision}.h"'
    return Library(MINILM / f"libencoder_{precision}.so", MINILM / "encoder.c", [products], fits=X86)


MINILM = Path("src/kb/embedding/minilm")
INDEX = Path("src/kb/index")
EXTRACT = Path("src/kb/ingest/extract")
KERNELS = INDEX / "kernels.c"
LIBRARIES = [
    Library(INDEX / "libkernels.so", KERNELS),
    Library(INDEX / "libkernels_wide.so", KERNELS, ["-mcpu=x86_64_v2+avx2+fma"], fits=X86),
    Library(EXTRACT / "libglyphs.so", EXTRACT / "glyphs.c"),
    encoder("f32"),
    encoder("bf16"),
]
# On x86-64 for every processor that numpy runs on, not for this one only. What needs more is marked in the source, and
# checked when it is run.
MACHINE = "-mcpu=x86_64_v2" if X86 else "-mcpu=baseline"
# The C library of manylinux2014, older than any that the other wheels need; where it is not glibc, this machine's own.
GLIBC = "2.17" if platform.libc_ver()[0] == "glibc" else None
TARGET = ["-target", f"{platform.machine()}-linux-gnu.{GLIBC}"] if GLIBC else []
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
OPTIONS = [*TARGET, MACHINE, "-std=c17", "-O3", "-fno-math-errno", "-fPIC", "-shared", "-s", *WARNINGS]


class CompilingHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        for library in LIBRARIES:
            Path(self.root, library.path).unlink(missing_ok=True)  # it may be another machine's
        if os.environ.get("KB_BUILD") == "pure":
            return
        wanted = [library for library in LIBRARIES if library.fits and Path(self.root, library.source).exists()]
        if wanted and importlib.util.find_spec("ziglang") is None:
            self.app.display_warning("kb: no compiler (ziglang), so the C parts are left out: numpy does their work.")
            return
        with tempfile.TemporaryDirectory(prefix="kb-build-") as cache:  # not the compiler's usual one in the home
            for library in wanted:
                self._compile(library, cache)
                build_data["artifacts"].append(f"/{library.path}")
        if wanted:
            build_data.update(pure_python=False, tag=f"py3-none-{_platform()}")

    def _compile(self, library: Library, cache: str) -> None:
        caches = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
        options = [*OPTIONS, *library.options, "-o", library.path, library.source]
        subprocess.run(
            [sys.executable, "-m", "ziglang", "cc", *options], cwd=self.root, env=os.environ | caches, check=True
        )


def _platform() -> str:
    """The platform's name in a wheel's tag: what the libraries need, not what this machine has."""
    if GLIBC:
        return f"manylinux_{GLIBC.replace('.', '_')}_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
