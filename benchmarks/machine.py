"""What the figures were measured on: the processor, its peak in float32, the memory of a process."""

import platform
import re
import subprocess
import time
from pathlib import Path

import numpy as np

from kb.core.cpu import usable_cores

# What decides how fast a model can run here.
TELLING_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_bf16", "asimd", "bf16", "i8mm")
MATRIX = 1536


def cpu_flags() -> set[str]:
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return set()
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", info, re.MULTILINE)
    return set(found[1].split()) if found else set()


def cpu_name() -> str:
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*:\s*(.*)$", info, re.MULTILINE)
    return found[1] if found else platform.machine()


def describe() -> str:
    """One line for the head of a report."""
    flags = cpu_flags()
    has = [flag for flag in TELLING_FLAGS if flag in flags]
    lacks = [flag for flag in ("avx2", "avx512_bf16") if flag not in flags]
    return (
        f"{cpu_name()}, {usable_cores()} usable cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}; flags: {', '.join(has) or 'none of note'}"
        + (f" (no {', no '.join(lacks)})" if lacks else "")
    )


def has_bf16() -> bool:
    return bool(cpu_flags() & {"avx512_bf16", "amx_bf16", "bf16"})


def sgemm_gflops(seconds: float = 0.5) -> float:
    """The best rate at which numpy multiplies float32 matrices on all cores: what arithmetic allows."""
    left = np.random.default_rng(1).random((MATRIX, MATRIX), np.float32)
    right = left.T.copy()
    best = 0.0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        left @ right
        best = max(best, 2 * MATRIX**3 / (time.perf_counter() - started) / 1e9)
    return best


def resident_mb(pid: int) -> float:
    """Memory that a process holds in RAM now, in MB of 2^20 bytes."""
    said = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(said.stdout) / 1024


def folder_bytes(folder: Path) -> int:
    """What its files take on the disk; room that was only set aside is not taken."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
