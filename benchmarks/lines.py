"""The contestant's end of a pipe: one line of JSON in, one out. Only the standard library is imported."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

Said = dict[str, Any]


def serve(open_contestant: Callable[[], tuple[Said, Callable[[Said], Said]]]) -> None:
    """Open the contestant, say that it is ready, and answer until standard input ends.

    Output of its libraries goes to standard error, so that the lines stay whole.
    """
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as lines:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

        def say(said: Said) -> None:
            lines.write(json.dumps(said) + "\n")
            lines.flush()

        ready, answer = open_contestant()
        say(ready)
        for line in sys.stdin:
            say(answer(json.loads(line)))
