"""Compiles the parts of kb that are written in C while the package is built, with a compiler that comes as a wheel.

So nobody needs one of their own. Where the sources are not there (an image that has no use for them), the package has
Python only.
"""

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

X86 = platform.machine() == "x86_64"
SOURCES = {
    Path("src/kb/search/loops.c"): True,
    Path("src/kb/encoder.c"): X86,  # elsewhere a general runtime does its work
}
# On x86-64 for every processor that numpy runs on, not for this one only. What needs more is marked in the source, and
# checked when it is run.
MACHINE = "-mcpu=x86_64_v2" if X86 else "-mcpu=baseline"
OPTIONS = [MACHINE, "-std=c17", "-O3", "-fno-math-errno", "-fPIC", "-shared", "-s", "-Wall", "-Wextra", "-Werror"]


class CompilingHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        for source, fits in SOURCES.items():
            library = source.with_name(f"lib{source.stem}.so")
            Path(self.root, library).unlink(missing_ok=True)  # it may be another machine's
            if fits and Path(self.root, source).exists():
                self._compile(source, library)
                build_data["artifacts"].append(f"/{library}")
        if build_data["artifacts"]:
            build_data.update(pure_python=False, infer_tag=True)

    def _compile(self, source: Path, library: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="kb-build-") as cache:
            # What the compiler keeps for another time does not belong into anybody's home.
            places = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
            command = [sys.executable, "-m", "ziglang", "cc", *OPTIONS, "-o", library, source]
            subprocess.run(command, cwd=self.root, env=os.environ | places, check=True)
