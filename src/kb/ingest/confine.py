"""What a process that reads foreign files gives up before it reads the first one.

No file can be written, no socket opened, no core dumped, and no memory beyond the limit mapped.
It ends when the engine ends.
"""

import contextlib
import ctypes
import os
import resource
import signal
import struct
import sys
from typing import Any

MAPPED_BEYOND = 4 * 2**30  # address space that libraries map without ever using it

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 1, 38, 22, 2
# The number of socket(2), by the architecture as the kernel calls it.
SOCKET_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
REFUSED_EVENTS = ("socket.__new__", "socket.connect", "socket.bind", "socket.getaddrinfo")


def confine(memory_bytes: int) -> None:
    limit(resource.RLIMIT_AS, memory_bytes + MAPPED_BEYOND)
    limit(resource.RLIMIT_FSIZE, 0)  # pipes are not files: talking to the engine goes on
    limit(resource.RLIMIT_CORE, 0)
    sys.addaudithook(refuse_sockets)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        die_with_parent(libc)
        refuse_socket_calls(libc)


def limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS does not limit address space
        resource.setrlimit(kind, (value, value))


def refuse_sockets(event: str, _: tuple[Any, ...]) -> None:
    if event in REFUSED_EVENTS:
        raise PermissionError("a process that reads documents opens no connection")


def die_with_parent(libc: ctypes.CDLL) -> None:
    """Even in the middle of a page, and even if the engine was killed."""
    parent = os.getppid()
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def refuse_socket_calls(libc: ctypes.CDLL) -> None:
    """Have the kernel refuse socket(2): the hook above binds only what asks Python."""
    if os.uname().machine not in SOCKET_CALLS:
        return
    architecture, number = SOCKET_CALLS[os.uname().machine]
    load, equal, answer = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | 1  # EPERM
    program = [
        (load, 0, 0, 4),  # the architecture of the call
        (equal, 0, 3, architecture),
        (load, 0, 0, 0),  # its number
        (equal, 0, 1, number),
        (answer, 0, 0, refuse),
        (answer, 0, 0, allow),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    filter_program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_program, 0, 0)
