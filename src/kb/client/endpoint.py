"""Where the engine is, the sentences for what can go wrong on the way to it, and what its answers mean."""

import json
import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

from kb import __version__
from kb.core.errors import InvalidRequest, KBError, Unavailable, from_body
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.client.calls import Call
    from kb.core.endpoint import Place
    from kb.core.settings import Settings

MIN_ENGINE_VERSION = "3.0.0"


class Endpoint(NamedTuple):
    """Where the engine is and what every request to it carries."""

    url: str  # without a slash at the end
    secure: bool
    host: str
    port: int
    authority: str  # host and port, for the header Host
    prefix: str  # the path of a reverse proxy, before that of the API
    headers: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, settings: "Settings | Place") -> "Endpoint":
        """The endpoint that the settings name; an error names the setting that cannot work."""
        url, key = settings.engine_url, settings.api_key
        if key and not re.fullmatch(r"[!-~]+", key):
            raise InvalidRequest("KB_API_KEY holds what no HTTP header can carry: use printable ASCII.")
        try:
            parts = urlsplit(url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
            host = parts.hostname or ""
            if not host.isascii():  # the encoding is slow to load
                host = host.encode("idna").decode()
        except ValueError as wrong:
            raise InvalidRequest(f"KB_ENGINE_URL is {url!r}, which is not a URL: {wrong}.") from wrong
        if parts.username or parts.password:
            raise InvalidRequest("KB_ENGINE_URL must not hold a user or password: the key is KB_API_KEY.")
        if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
            raise InvalidRequest(
                f"KB_ENGINE_URL is {url!r}, but must look like http://HOST:PORT or https://HOST/PREFIX."
            )
        if parts.port == 0:
            raise InvalidRequest(
                "The engine takes any free port (KB_PORT is 0), so its address is not known: set KB_ENGINE_URL to the "
                "one that `kb serve` shows."
            )
        headers = [("Accept", "application/json"), ("User-Agent", f"kb/{__version__}")]
        if key:
            headers.append(("Authorization", f"Bearer {key}"))
        name = f"[{host}]" if ":" in host else host
        prefix = parts.path.rstrip("/")
        return cls(
            url=f"{parts.scheme}://{parts.netloc}{prefix}",
            secure=parts.scheme == "https",
            host=host,
            port=port,
            authority=name if parts.port is None else f"{name}:{port}",
            prefix=quote(prefix, safe="/%"),
            headers=tuple(headers),
        )

    @property
    def base(self) -> str:
        """What comes before the path of a request, as it is sent."""
        return f"{'https' if self.secure else 'http'}://{self.authority}{self.prefix}"

    def unreachable(self, reason: object) -> Unavailable:
        return self._away(f"The engine at {self.url} is unreachable ({reason}); start it with: kb up")

    def silent(self, call: "Call") -> Unavailable:
        return self._away(
            f"The engine at {self.url} did not answer {call.method} {call.path} within {call.timeout:g} s. "
            "It may be busy: try again, or look at its log.",
            in_doubt=True,
        )

    def broken(self, reason: object) -> Unavailable:
        return self._away(
            f"The connection to {self.url} broke before the answer was complete ({reason}). "
            "Whether the request took effect is not known: look before you repeat it.",
            in_doubt=True,
        )

    def away(self, status: int) -> Unavailable:
        """A proxy's answer in place of an engine's. With 503 it has found none; else the engine went away meanwhile."""
        if status == 503:
            return self._away(f"No engine answers behind {self.url} (HTTP 503 from a proxy): start one.", proxy=True)
        return self._away(
            f"The engine behind {self.url} went away before its answer was complete (HTTP {status} from a proxy). "
            "Whether the request took effect is not known: look before you repeat it.",
            in_doubt=True,
            proxy=True,
        )

    def foreign(self, what: str) -> Unavailable:
        return self._away(f"What answers at {self.url} is not a kb engine: {what}. Check KB_ENGINE_URL.")

    def outdated(self, version: str | None) -> Unavailable:
        told = f"is version {version}" if version else "does not say its version, so it is older"
        return self._away(
            f"kb {__version__} needs an engine of version {MIN_ENGINE_VERSION} or newer, but the one at "
            f"{self.url} {told}: update it."
        )

    def _away(self, message: str, **details: bool) -> Unavailable:
        return Unavailable(message, url=self.url, **details)


def read_answer(endpoint: Endpoint, status: int, version: str | None, body: bytes, *, plain: bool = False) -> Json:
    """The engine's answer as plain data, or the error that it carries. `version`: the header X-KB-Version."""
    try:
        answer = {"text": body.decode()} if plain and version and status < 400 else json.loads(body)
    except ValueError:
        answer = None
    if version is None and status in (502, 503, 504):
        raise endpoint.away(status)
    if version is None and not isinstance(answer, dict):
        raise endpoint.foreign(f"it sent HTTP {status} without a version and without JSON")
    if version is None or _numbers(version) < _numbers(MIN_ENGINE_VERSION):
        raise endpoint.outdated(version)
    if not isinstance(answer, dict):
        raise KBError(f"The engine at {endpoint.url} sent HTTP {status} with no JSON object in it.")
    if status < 400:
        return answer
    if not isinstance(answer.get("error"), dict):
        raise KBError(f"The engine at {endpoint.url} sent HTTP {status} without saying why.")
    raise from_body(answer)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
