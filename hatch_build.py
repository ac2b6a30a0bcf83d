"""Compiles src/kb/encoder.c while the package is built, with a compiler that comes as a wheel: nobody needs their own.

Where there is nothing to compile (another processor, an image that has no use for it) or no compiler, the package has
Python only, and questions are embedded by a general runtime. A compiler that fails is an error.
"""

import importlib.util
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("src/kb/encoder.c")
LIBRARY = Path("src/kb/libencoder.so")
# For any x86-64: what needs more is marked in the source, and checked when it is run.
OPTIONS = [
    "-mcpu=baseline",
    "-std=c17",
    "-O3",
    "-fno-math-errno",
    "-fPIC",
    "-shared",
    "-s",
    "-Wall",
    "-Wextra",
    "-Werror",
]


class EncoderHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        source, library = Path(self.root, SOURCE), Path(self.root, LIBRARY)
        library.unlink(missing_ok=True)  # it may be another machine's
        if not source.exists() or platform.machine() != "x86_64" or importlib.util.find_spec("ziglang") is None:
            return
        with tempfile.TemporaryDirectory(prefix="kb-build-") as cache:
            # What the compiler keeps for another time does not belong into anybody's home.
            places = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
            command = [sys.executable, "-m", "ziglang", "cc", *OPTIONS, "-o", library, source]
            subprocess.run(command, env=os.environ | places, check=True)
        system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data.update(pure_python=False, tag=f"py3-none-{system}")
        build_data["artifacts"].append(f"/{LIBRARY}")
