"""The engines of one knowledge base: which one a call goes to, and whether another may be asked after a failure.

A call is repeated at another engine if it certainly did not happen: the connection could not be made, or the engine or
a proxy refused it with 503. If it may have happened (an error with `in_doubt`: the connection broke, or no answer
came in time), only a call that does no harm when it is repeated goes to another engine: `Call.repeatable` says which.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kb.client.endpoint import Endpoint
from kb.core.endpoint import Place, addresses
from kb.core.errors import Unavailable

if TYPE_CHECKING:
    from kb.client.calls import Call
    from kb.core.settings import Settings

AVOID_SECONDS = 15  # an engine that failed is asked last for so long


class Engines:
    """Calls go to the engines in turn. Not safe for threads."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = endpoints
        self._turn = 0
        self._failed_at: dict[Endpoint, float] = {}

    @classmethod
    def of(cls, settings: "Settings | Place") -> "Engines":
        return cls([Endpoint.of(Place(url, settings.api_key)) for url in addresses(settings.engine_url)])

    @property
    def url(self) -> str:
        """An address for people."""
        return self._endpoints[0].url

    def attempts(self, call: "Call") -> "Attempts":
        start = self._turn % len(self._endpoints)
        self._turn += 1
        order = [*self._endpoints[start:], *self._endpoints[:start]]
        lately = time.monotonic() - AVOID_SECONDS
        # A stable sort: those that failed lately come last, the longest ago first.
        order.sort(key=lambda one: max(self._failed_at.get(one, lately), lately))
        return Attempts(self, order, call)

    def failed(self, endpoint: Endpoint) -> None:
        self._failed_at[endpoint] = time.monotonic()


class Attempts:
    """The engines that one call may go to. `engine` is the one to ask now."""

    def __init__(self, engines: Engines, order: list[Endpoint], call: "Call") -> None:
        self._engines = engines
        self._left = order
        self._call = call
        self._errors: list[Unavailable] = []
        self.engine = self._left.pop(0)

    def failed(self, error: Unavailable) -> None:
        """Turn to the next engine; raise the error if there is none that may be asked."""
        self._engines.failed(self.engine)
        self._errors.append(error)
        if error.details.get("proxy") and not any(e.details.get("proxy") for e in self._errors[:-1]):
            self._left.append(self.engine)  # a load balancer: it leads to another engine now
        if not self._left or (error.details.get("in_doubt") and not self._call.repeatable):
            raise self._summary() from error
        self.engine = self._left.pop(0)

    def _summary(self) -> Unavailable:
        """The error that the caller needs to know: one that leaves in doubt whether the call happened comes first."""
        in_doubt = [error for error in self._errors if error.details.get("in_doubt")]
        if in_doubt or len(self._errors) == 1:
            return (in_doubt or self._errors)[0]
        reasons = dict.fromkeys(error.message.rstrip(".") for error in self._errors)
        return Unavailable(f"No engine could answer: {'; '.join(reasons)}.", **self._errors[-1].details)
