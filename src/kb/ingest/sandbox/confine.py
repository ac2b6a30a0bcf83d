"""What a process that reads foreign files gives up.

Before it loads its libraries (`bind`): memory beyond the limit, writing files, core dumps, sockets, and outliving the
engine. After that and before the first file (`confine`): opening files, importing modules, and every system call that
reading does not need. The kernel enforces it: Landlock for files, seccomp for system calls.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter
from pathlib import Path
from typing import Any

from kb.ingest.sandbox import landlock, seccomp
from kb.ingest.sandbox.syscalls import PR_SET_PDEATHSIG, allowed

MAPPED_BEYOND = 4 * 2**30  # address space that libraries map without ever using it
MAX_DESCRIPTORS = 64
# Where PDFium looks for the fonts that a PDF only names, when a page has to be drawn.
FONTS = tuple(map(Path, ("/usr/share/fonts", "/usr/share/X11/fonts", "/usr/local/share/fonts")))
REFUSED_EVENTS = ("socket.__new__", "socket.connect", "socket.bind", "socket.getaddrinfo")


@dataclass(frozen=True, slots=True)
class Needs:
    """What a process still has to do after it has loaded everything."""

    readable: Sequence[Path] = ()  # files and folders
    programs: Sequence[Path] = ()  # that it runs, with their loader
    compiles: bool = False  # it makes machine code


def protection() -> str:
    """What confines a process here: `landlock 7, seccomp`, one of the two, or `limits` where there is neither."""
    version = landlock.abi()
    kinds = [f"landlock {version}"] * bool(version) + ["seccomp"] * seccomp.available()
    return ", ".join(kinds) or "limits"


def shortfall() -> str | None:
    """What a process could do here that it should not, and what would help; None where nothing is missing."""
    if landlock.abi() and seccomp.available():
        return None
    if seccomp.available():
        return (
            "This kernel offers no Landlock: seccomp alone keeps parsers from files, and Tesseract can read what you "
            "can. Linux 5.13 or newer has Landlock; `lsm=` of its command line must name it."
        )
    if landlock.abi():
        return (
            "Seccomp is not available here: Landlock keeps parsers from files, but not from all system calls. It takes "
            "x86_64 or aarch64, and a kernel and a container that allow it."
        )
    return (
        "This system offers neither Landlock nor seccomp: processes that read files have limits of memory and time "
        "only. Add files that you trust, or run kb on Linux or in a container."
    )


def bind(memory_bytes: int) -> None:
    limit(resource.RLIMIT_AS, memory_bytes + MAPPED_BEYOND)
    limit(resource.RLIMIT_FSIZE, 0)  # sockets are not files: talking to the engine goes on
    limit(resource.RLIMIT_CORE, 0)
    sys.addaudithook(refuse_sockets)
    die_with(os.getppid())


def confine(needs: Needs) -> None:
    """For the rest of this process's life. Raises if the kernel offers a protection and does not give it."""
    time.tzset()
    limit(resource.RLIMIT_NOFILE, MAX_DESCRIPTORS)
    # A module that is missing is an ImportError, which libraries expect, and not a refused file, which they do not.
    sys.meta_path[:] = [BuiltinImporter]
    walled = landlock.abi() > 0 and is_single_threaded()
    if landlock.abi():
        landlock.restrict(needs.readable, needs.programs)
    if seccomp.available():
        opens = walled and bool(needs.readable)
        seccomp.install(allowed(opens=opens, compiles=needs.compiles, runs=bool(needs.programs)))


def is_single_threaded() -> bool:
    """Landlock does not bind threads that already run: with such, no file may be opened at all."""
    return len(os.listdir("/proc/self/task")) == 1


def limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS does not limit address space
        resource.setrlimit(kind, (value, value))


def refuse_sockets(event: str, _: tuple[Any, ...]) -> None:
    if event in REFUSED_EVENTS:
        raise PermissionError("a process that reads documents opens no connection")


def die_with(parent: int) -> None:
    """End when the parent ends: even in the middle of a page, and even if it was killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(0)
