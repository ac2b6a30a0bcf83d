"""Names of plain types. Importing them takes no time, which the command line cannot spare."""

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Interrupt = Callable[[], None]  # called between the steps of a job; raises when the job should stop
