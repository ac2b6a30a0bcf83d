"""A program as it would run on a kernel without Landlock, or in a container that refuses it: `FILE ARGUMENTS...`."""

import errno
import os
import sys

from kb.ingest.sandbox.landlock import CREATE_RULESET
from kb.ingest.sandbox.seccomp import ALLOW, ANSWER, EQUAL, ERRNO, LOAD, NUMBER, Step, load

load(
    [
        Step(LOAD, NUMBER),
        Step(EQUAL, CREATE_RULESET, if_not=1),
        Step(ANSWER, ERRNO | errno.ENOSYS),
        Step(ANSWER, ALLOW),
    ]
)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
