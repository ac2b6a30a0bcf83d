"""The system calls that a process which reads foreign files may make, and with which arguments.

Numbers are those of the kernel's headers: `asm/unistd_64.h` for x86_64, `asm-generic/unistd.h` for aarch64.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

# Name, number on x86_64, number on aarch64; `-` where there is no such call. The frequent ones come first.
NUMBERS = """
    read 0 63               write 1 64              futex 202 98            pread64 17 67
    lseek 8 62              mmap 9 222              munmap 11 215           madvise 28 233
    brk 12 214              mprotect 10 226         mremap 25 216           sched_yield 24 124
    close 3 57              fstat 5 80              stat 4 -                lstat 6 -
    newfstatat 262 79       statx 332 291           readv 19 65             writev 20 66
    recvmsg 47 212          recvfrom 45 207         poll 7 -                ppoll 271 73
    select 23 -             pselect6 270 72         dup 32 23               fcntl 72 25
    rt_sigaction 13 134     rt_sigprocmask 14 135   rt_sigreturn 15 139     sigaltstack 131 132
    restart_syscall 219 128 nanosleep 35 101        clock_nanosleep 230 115 clock_gettime 228 113
    clock_getres 229 114    gettimeofday 96 169     time 201 -              times 100 153
    getpid 39 172           gettid 186 178          getppid 110 173         getuid 102 174
    geteuid 107 175         getgid 104 176          getegid 108 177         uname 63 160
    sysinfo 99 179          getrusage 98 165        getrlimit 97 163        prlimit64 302 261
    getcpu 309 168          sched_getaffinity 204 123                       getrandom 318 278
    membarrier 324 283      rseq 334 293            set_tid_address 218 96  set_robust_list 273 99
    clone 56 220            clone3 435 435          tgkill 234 131          prctl 157 167
    preadv 295 69           preadv2 327 286         getcwd 79 17            exit 60 93
    exit_group 231 94

    open 2 -                openat 257 56           openat2 437 437         getdents64 217 61
    access 21 -             faccessat 269 48        faccessat2 439 439      readlink 89 -
    readlinkat 267 78

    execve 59 221           execveat 322 281        wait4 61 260            pipe2 293 59
    dup2 33 -               dup3 292 24             close_range 436 436     arch_prctl 158 -

    ptrace 101 117          process_vm_readv 310 270                        process_vm_writev 311 271
    io_uring_setup 425 425  io_uring_enter 426 426  io_uring_register 427 427
    bpf 321 280             perf_event_open 298 241 userfaultfd 323 282     pidfd_getfd 438 438
    unshare 272 97          setns 308 268           mount 165 40            pivot_root 155 41
    keyctl 250 219          add_key 248 217         request_key 249 218     kexec_load 246 104
    init_module 175 105     finit_module 313 273
"""


class Architecture(NamedTuple):
    audit: int  # how the kernel names it to a filter
    column: int  # of its numbers in the table


ARCHITECTURES = {"x86_64": Architecture(0xC000003E, 1), "aarch64": Architecture(0xC00000B7, 2)}


class Condition(NamedTuple):
    """What an argument must be, after a mask: one 32-bit half of it is compared."""

    argument: int
    value: int
    mask: int = 0xFFFFFFFF
    high: bool = False


Alternatives = tuple[tuple[Condition, ...], ...]  # one must hold, with all of its conditions
ALWAYS: Alternatives = ((),)

PROT_EXEC = 4
CLONE_VM, CLONE_THREAD, CLONE_AWAY = 0x100, 0x10000, 0x7E028080  # the last: any namespace, and another parent
PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_VMA, SIGKILL = 1, 15, 0x53564D41, 9
FCNTL = (0, 1, 2, 3, 4, 1030)  # duplicate, flags of the descriptor and of the file; no owner, lock, lease or seal
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

BASE = """
    read write futex pread64 preadv preadv2 lseek munmap madvise brk mremap sched_yield close fstat stat lstat
    newfstatat statx readv writev recvmsg recvfrom poll ppoll select pselect6 dup rt_sigaction rt_sigprocmask
    rt_sigreturn sigaltstack restart_syscall nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time
    times getpid gettid getppid getuid geteuid getgid getegid uname sysinfo getrusage getrlimit getcpu
    sched_getaffinity getrandom membarrier rseq set_tid_address set_robust_list getcwd exit exit_group
""".split()
RUNNING = "execve wait4 pipe2 dup2 dup3 close_range arch_prctl access faccessat readlink readlinkat".split()
# Answered as an older kernel does, so that libraries take the call before it, whose arguments a filter can see.
UNKNOWN = "clone3 openat2 faccessat2".split()
# No library tries these just to see whether they work: the process that does is taken over, and ends.
FATAL = """
    ptrace process_vm_readv process_vm_writev io_uring_setup io_uring_enter io_uring_register bpf perf_event_open
    userfaultfd pidfd_getfd unshare setns mount pivot_root keyctl add_key request_key kexec_load init_module
    finit_module execve execveat
""".split()


def numbers(machine: str) -> dict[str, int]:
    """The number of each call in the table that this architecture has."""
    words = NUMBERS.split()
    rows = zip(words[::3], words[ARCHITECTURES[machine].column :: 3], strict=True)
    return {name: int(number) for name, number in rows if number != "-"}


def allowed(*, opens: bool, compiles: bool, runs: bool) -> Mapping[str, Alternatives]:
    """The calls that are let through; all others fail with EPERM, but for `UNKNOWN` and `FATAL`.

    `opens`: files may be opened to be read. `compiles`: memory may become code. `runs`: programs may be run.
    """
    own = os.getpid()
    thread = (Condition(0, CLONE_VM | CLONE_THREAD, CLONE_VM | CLONE_THREAD | CLONE_AWAY),)
    child = (Condition(0, 0, CLONE_THREAD | CLONE_AWAY),)
    no_code = ((Condition(2, 0, PROT_EXEC),),)
    rules: dict[str, Alternatives] = {
        **dict.fromkeys(BASE, ALWAYS),
        "mmap": ALWAYS if compiles or runs else no_code,
        "mprotect": ALWAYS if compiles or runs else no_code,
        "fcntl": tuple((Condition(1, command),) for command in FCNTL),
        "clone": (thread, child) if runs else (thread,),
        "tgkill": ((Condition(0, own),),),  # abort()
        "prlimit64": ((Condition(0, 0), Condition(2, 0), Condition(2, 0, high=True)),),  # only to ask, only for itself
        "prctl": ((Condition(0, PR_SET_NAME),), (Condition(0, PR_SET_VMA),)),
    }
    if opens or runs:
        reading = Condition(1, 0, WRITES), Condition(2, 0, WRITES)
        rules |= {"open": ((reading[0],),), "openat": ((reading[1],),), "getdents64": ALWAYS}
    if runs:
        ends_with_parent = (Condition(0, PR_SET_PDEATHSIG), Condition(1, SIGKILL))
        rules |= dict.fromkeys(RUNNING, ALWAYS)
        rules["prctl"] = (*rules["prctl"], ends_with_parent)
    return rules
