"""Landlock: the kernel refuses this process every file but those that are named here.

Rules can only be added, never taken back, and children inherit them. A kernel knows the rights of its ABI version
and of all earlier ones; this module asks for all that both sides know.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
ASK_VERSION = 1
PATH_BENEATH = 1
NO_NEW_PRIVS = 38

EXECUTE, READ_FILE, READ_DIR = 1 << 0, 1 << 2, 1 << 3
# How many of the file rights a kernel of this ABI knows, counted from bit 0: the last ones are moving a file to
# another folder (2), truncating (3) and ioctl on devices (5).
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 5: 16}
NETWORK_ABI, NETWORK_RIGHTS = 4, 0b11  # bind and connect of TCP
SCOPE_ABI, SCOPES = 6, 0b11  # abstract Unix sockets and signals to processes outside


def abi() -> int:
    """The version that this kernel offers; 0 where there is none."""
    return max(0, syscall(CREATE_RULESET, None, 0, ASK_VERSION)) if sys.platform == "linux" else 0


def restrict(readable: Iterable[Path], executable: Iterable[Path]) -> None:
    """Give up every right on files but to read and to execute what is given; also TCP, and signals to the outside.

    A folder stands for everything below it. What is not there is left out. Binds the calling thread and what it
    starts from now on, not threads that already run.
    """
    version = abi()
    ruleset = _checked(syscall(CREATE_RULESET, *_attributes(version), 0))
    for path in readable:
        _allow(ruleset, path, READ_FILE | READ_DIR)
    for path in executable:
        _allow(ruleset, path, READ_FILE | EXECUTE)
    _checked(ctypes.CDLL(None, use_errno=True).prctl(NO_NEW_PRIVS, 1, 0, 0, 0))
    _checked(syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _attributes(version: int) -> tuple[ctypes.Array[ctypes.c_char], int]:
    """Everything that is to be refused unless a rule allows it, and its size: it grew with the versions."""
    files = (1 << max(count for known, count in FILE_RIGHTS.items() if known <= version)) - 1
    fields = [files, NETWORK_RIGHTS, SCOPES][: 3 if version >= SCOPE_ABI else 2 if version >= NETWORK_ABI else 1]
    packed = struct.pack(f"={len(fields)}Q", *fields)
    return ctypes.create_string_buffer(packed, len(packed)), len(packed)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        if not path.is_dir():
            rights &= ~READ_DIR
        rule = struct.pack("=Qi", rights, descriptor)
        _checked(syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.create_string_buffer(rule, len(rule)), 0))
        os.close(descriptor)


def syscall(number: int, *arguments: object) -> int:
    """A system call that the C library has no function for; -1 when it fails."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return int(call(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
