"""Compiles the parts of kb that are written in C while the package is built, with a compiler that comes as a wheel.

So nobody needs one of their own. Where the sources are not there (an image that has no use for them), the package has
Python only.
"""

import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

X86 = platform.machine() == "x86_64"
LOOPS = Path("src/kb/search/loops.c")
ENCODER = Path("src/kb/encoder.c")  # for x86-64 only; elsewhere a general runtime does its work
SOURCES = [LOOPS, ENCODER] if X86 else [LOOPS]
OPTIONS = ["-std=c17", "-O3", "-fno-math-errno", "-fPIC", "-shared", "-s", "-Wall", "-Wextra", "-Werror"]
if X86:
    # For every processor on which numpy runs. What needs more is marked in the source, and checked when it is run.
    OPTIONS.append("-mcpu=x86_64_v2")


class CompilingHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        for source in SOURCES:
            library = source.with_name(f"lib{source.stem}.so")
            Path(self.root, library).unlink(missing_ok=True)  # it may be another machine's
            if Path(self.root, source).exists():
                self._compile(source, library)
                build_data["artifacts"].append(f"/{library}")
        if build_data["artifacts"]:
            system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data.update(pure_python=False, tag=f"py3-none-{system}")

    def _compile(self, source: Path, library: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="kb-build-") as cache:
            # What the compiler keeps for another time does not belong into anybody's home.
            places = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
            command = [sys.executable, "-m", "ziglang", "cc", *OPTIONS, "-o", library, source]
            subprocess.run(command, cwd=self.root, env=os.environ | places, check=True)
