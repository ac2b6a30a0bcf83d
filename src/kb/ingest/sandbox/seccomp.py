"""Seccomp: the kernel lets through the listed system calls of this process and refuses all others.

The filter is a program for the kernel's classic BPF machine: it loads a word of the call, compares, and answers.
Calls of another architecture (32-bit code, x32) have other numbers, and end the process: only an attack makes them.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kb.ingest.sandbox.landlock import syscall
from kb.ingest.sandbox.syscalls import ARCHITECTURES, FATAL, UNKNOWN, Alternatives, Condition, numbers

LOAD, AND, EQUAL, AT_LEAST, ANSWER = 0x20, 0x54, 0x15, 0x35, 0x06
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # where they stand in what the filter sees
X32 = 0x40000000  # the bit that marks such a call

SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_FILTER, ALL_THREADS, ASK_ACTION = 1, 1, 2
PR_SET_NO_NEW_PRIVS = 38


class Step(NamedTuple):
    code: int
    operand: int
    if_so: int = 0  # steps to skip
    if_not: int = 0


def available() -> bool:
    """Whether this kernel filters, and the numbers of its architecture are known."""
    if sys.platform != "linux" or os.uname().machine not in SECCOMP or sys.maxsize < 2**32:
        return False
    action = ctypes.create_string_buffer(struct.pack("=I", KILL), 4)
    return syscall(SECCOMP[os.uname().machine], ASK_ACTION, 0, action) == 0


def install(allowed: Mapping[str, Alternatives]) -> None:
    """Bind every thread of this process, and what it starts, to these calls. Raises when the kernel does not."""
    load(list(program(os.uname().machine, allowed)))


def load(steps: Sequence[Step]) -> None:
    """Have the kernel run a filter before every system call of this process, for good."""
    packed = b"".join(struct.pack("=HBBI", step.code, step.if_so, step.if_not, step.operand) for step in steps)
    code = ctypes.create_string_buffer(packed, len(packed))
    pointer = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if syscall(SECCOMP[os.uname().machine], SET_FILTER, ALL_THREADS, pointer) != 0:
        raise OSError(ctypes.get_errno(), "The system calls of this process could not be restricted.")


def program(machine: str, allowed: Mapping[str, Alternatives]) -> Iterable[Step]:
    number = numbers(machine)
    yield Step(LOAD, ARCHITECTURE)
    yield Step(EQUAL, ARCHITECTURES[machine].audit, if_so=1)
    yield Step(ANSWER, KILL)
    yield Step(LOAD, NUMBER)
    if machine == "x86_64":
        yield Step(AT_LEAST, X32, if_not=1)
        yield Step(ANSWER, KILL)
    for name in number:
        if name in allowed:
            yield from let_through(number[name], allowed[name])
    for name in number:
        if name not in allowed and (name in FATAL or name in UNKNOWN):
            yield Step(EQUAL, number[name], if_not=1)
            yield Step(ANSWER, KILL if name in FATAL else ERRNO | errno.ENOSYS)
    yield Step(ANSWER, ERRNO | errno.EPERM)


def let_through(number: int, alternatives: Alternatives) -> list[Step]:
    """Allow a call if one of the alternatives holds; if it is that call and none does, refuse it."""
    if alternatives == ((),):
        return [Step(EQUAL, number, if_not=1), Step(ANSWER, ALLOW)]
    steps = [step for conditions in alternatives for step in together(conditions)]
    return [Step(EQUAL, number, if_not=len(steps) + 1), *steps, Step(ANSWER, ERRNO | errno.EPERM)]


def together(conditions: tuple[Condition, ...]) -> list[Step]:
    """Allow if all of the conditions hold; otherwise skip to what follows."""
    steps = [Step(ANSWER, ALLOW)]
    for condition in reversed(conditions):
        place = ARGUMENTS + 8 * condition.argument + 4 * condition.high
        steps = [
            Step(LOAD, place),
            Step(AND, condition.mask),
            Step(EQUAL, condition.value, if_not=len(steps)),
            *steps,
        ]
    return steps
