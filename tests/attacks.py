"""What a parser that was taken over tries: an attack that succeeds returns, one that is refused raises OSError.

They use system calls directly, because Python's own checks are no obstacle to machine code.
"""

import ctypes
import mmap
import os
import socket
import struct
from collections.abc import Callable
from importlib import import_module

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
LIBC.mmap.restype = ctypes.c_void_p

# Numbers of x86_64.
SOCKET, FORK, KILL, TRUNCATE, RENAME, LINK, UNLINK, CHMOD, PTRACE, SETSID, SETPRIORITY = (
    41,
    57,
    62,
    76,
    82,
    86,
    87,
    90,
    101,
    112,
    141,
)
CLONE, EXECVE, FCNTL, PRCTL, SCHED_SETAFFINITY, TGKILL, KEYCTL, UNSHARE = 56, 59, 72, 157, 203, 234, 250, 272
PERF_EVENT_OPEN, PRLIMIT, PROCESS_VM_READV, SECCOMP, MEMFD_CREATE, BPF, EXECVEAT = 298, 302, 310, 317, 319, 321, 322
IO_URING_SETUP, CLONE3, PIDFD_OPEN = 425, 435, 434
X32 = 0x40000000
CLONE_NEWUSER = 0x10000000
# socket(AF_INET, SOCK_STREAM, 0) as 32-bit code calls it.
INT_80 = bytes.fromhex("53 b867010000 bb02000000 b901000000 31d2 cd80 5b c3")


def syscall(number: int, *arguments: object) -> int:
    result = LIBC.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def map_shared(target: bytes) -> None:
    descriptor = os.open(target, os.O_RDWR)
    mmap.mmap(descriptor, 4, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)[:4] = b"evil"


def reopen_the_document(_: bytes) -> None:
    for name in range(64):
        try:
            if os.fstat(name).st_size:
                os.close(os.open(f"/proc/self/fd/{name}", os.O_RDWR))
        except OSError as error:
            if error.errno not in (9, 6):  # no such descriptor, or a socket
                raise


def kill_the_parent(_: bytes) -> None:
    syscall(KILL, os.getppid(), 0)


def tgkill_the_parent(_: bytes) -> None:
    syscall(TGKILL, os.getppid(), os.getppid(), 0)


def read_the_parents_memory(_: bytes) -> None:
    buffer = ctypes.create_string_buffer(8)
    vector = struct.pack("PN", ctypes.addressof(buffer), 8)
    syscall(PROCESS_VM_READV, os.getppid(), vector, 1, vector, 1, 0)


def memfd_and_execveat(_: bytes) -> None:
    syscall(MEMFD_CREATE, b"x", 0)


def execveat(target: bytes) -> None:
    syscall(EXECVEAT, -100, b"/bin/true", None, None, 0)


def clone_a_user_namespace(_: bytes) -> None:
    if syscall(CLONE, CLONE_NEWUSER | 17, 0, 0, 0, 0) == 0:
        os._exit(0)


def clone3(_: bytes) -> None:
    arguments = struct.pack("8Q", 0, 0, 0, 0, 17, 0, 0, 0)
    if syscall(CLONE3, arguments, len(arguments)) == 0:
        os._exit(0)


def fork(_: bytes) -> None:
    if syscall(FORK) == 0:
        os._exit(0)


def make_code(_: bytes) -> int:
    pages = LIBC.mmap(None, ctypes.c_size_t(4096), 7, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, ctypes.c_long(0))
    if pages == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "no code")
    return int(pages)


def make_memory_code(_: bytes) -> None:
    pages = LIBC.mmap(None, ctypes.c_size_t(4096), 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, ctypes.c_long(0))
    if LIBC.mprotect(ctypes.c_void_p(pages), ctypes.c_size_t(4096), 5):
        raise OSError(ctypes.get_errno(), "no code")


def int_80(target: bytes) -> None:
    """A socket through the gate for 32-bit code, whose calls have other numbers."""
    pages = make_code(target)
    ctypes.memmove(pages, INT_80, len(INT_80))
    if ctypes.CFUNCTYPE(ctypes.c_int)(pages)() < 0:
        raise OSError("refused")


def import_late(_: bytes) -> None:
    try:
        import_module("colorsys")
    except ImportError as error:
        raise OSError("refused") from error


REFUSED: dict[str, Callable[[bytes], object]] = {
    "read": lambda target: os.open(target, os.O_RDONLY),
    "write": lambda target: os.open(target, os.O_WRONLY),
    "append": lambda target: os.open(target, os.O_WRONLY | os.O_APPEND),
    "create": lambda target: os.open(target + b".new", os.O_WRONLY | os.O_CREAT),
    "list_the_folder": lambda target: os.listdir(os.path.dirname(target)),
    "map_shared": map_shared,
    "reopen_the_document": reopen_the_document,
    "truncate": lambda target: syscall(TRUNCATE, target, 0),
    "rename": lambda target: syscall(RENAME, target, target + b".new"),
    "link": lambda target: syscall(LINK, target, target + b".new"),
    "unlink": lambda target: syscall(UNLINK, target),
    "chmod": lambda target: syscall(CHMOD, target, 0),
    "read_the_parents_keys": lambda _: os.open(f"/proc/{os.getppid()}/environ", os.O_RDONLY),
    "open_the_parents_memory": lambda _: os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY),
    "kill_the_parent": kill_the_parent,
    "tgkill_the_parent": tgkill_the_parent,
    "signal_the_parent_by_fcntl": lambda _: syscall(FCNTL, 2, 8, os.getppid()),  # F_SETOWN
    "open_the_parent": lambda _: syscall(PIDFD_OPEN, os.getppid(), 0),
    "slow_down_the_parent": lambda _: syscall(SETPRIORITY, 0, os.getppid(), 19),
    "limit_the_parent": lambda _: syscall(PRLIMIT, os.getppid(), 7, None, ctypes.create_string_buffer(16)),
    "pin_the_parent": lambda _: syscall(SCHED_SETAFFINITY, os.getppid(), 8, struct.pack("Q", 1)),
    "leave_the_group": lambda _: syscall(SETSID),
    "outlive_the_parent": lambda _: syscall(PRCTL, 1, 0, 0, 0, 0),
    "fork": fork,
    "clone3": clone3,
    "clone_a_user_namespace": clone_a_user_namespace,
    "socket": lambda _: socket.socket(),
    "socket_below_python": lambda _: syscall(SOCKET, 2, 1, 0),
    "unix_socket_below_python": lambda _: syscall(SOCKET, 1, 1, 0),
    "memfd": lambda _: syscall(MEMFD_CREATE, b"x", 0),
    "make_code": make_code,
    "make_memory_code": make_memory_code,
    "int_80": int_80,  # the code cannot even be made here
    "another_filter": lambda _: syscall(SECCOMP, 1, 0, struct.pack("HxxxxxxP", 0, 0)),
    "import_late": import_late,
}
KILLED: dict[str, Callable[[bytes], object]] = {
    "ptrace_the_parent": lambda _: syscall(PTRACE, 16, os.getppid(), 0, 0),
    "read_the_parents_memory": read_the_parents_memory,
    "execve": lambda _: syscall(EXECVE, b"/bin/true", None, None),
    "execveat": execveat,
    "unshare": lambda _: syscall(UNSHARE, CLONE_NEWUSER),
    "io_uring": lambda _: syscall(IO_URING_SETUP, 1, ctypes.create_string_buffer(120)),
    "keyring": lambda _: syscall(KEYCTL, 0, -3, 1),
    "bpf": lambda _: syscall(BPF, 0, ctypes.create_string_buffer(128), 128),
    "perf": lambda _: syscall(PERF_EVENT_OPEN, ctypes.create_string_buffer(128), 0, -1, -1, 0),
    "x32": lambda _: syscall(X32 | SOCKET, 2, 1, 0),
}
ATTACKS = REFUSED | KILLED
