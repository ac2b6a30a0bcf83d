"""A contestant answers one line of JSON with another. Only the standard library is imported."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

Said = dict[str, Any]


def serve(open_contestant: Callable[[], tuple[Said, Callable[[Said], Said]]]) -> None:
    """Open the contestant, say that it is ready, and answer until nobody asks any more.

    What its libraries print goes to standard error, so that the lines stay whole.
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
