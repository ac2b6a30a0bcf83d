"""Who may come in: the checks that every HTTP surface of kb makes before anything else.

A page on the web can reach localhost, so local does not mean safe: a foreign Host (DNS rebinding), a foreign Origin
and a cross-site request are refused, with a key or without.
"""

import hmac
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from kb.errors import Forbidden, Unauthorized
from kb.settings import LOOPBACK, Settings


class Gate(NamedTuple):
    name: str  # what is behind it, for the messages
    key: bytes  # empty: open
    key_setting: str
    hosts: frozenset[str]
    hosts_setting: str

    @classmethod
    def of_engine(cls, settings: Settings) -> "Gate":
        hosts = _hosts(settings.host, settings.allowed_hosts)
        return cls("engine", settings.api_key.encode(), "KB_API_KEY", hosts, "KB_ALLOWED_HOSTS")

    @classmethod
    def of_mcp(cls, settings: Settings) -> "Gate":
        hosts = _hosts(settings.mcp_host, settings.mcp_allowed_hosts)
        return cls("MCP server", settings.mcp_api_key.encode(), "KB_MCP_API_KEY", hosts, "KB_MCP_ALLOWED_HOSTS")

    def check_place(self, headers: Mapping[str, str]) -> None:
        """Addressed by a name of ours, and not by a page of somebody else's. Header names are in lower case."""
        name = host_name(headers.get("host", ""))
        if name not in self.hosts:
            raise Forbidden(
                f"This {self.name} does not answer to the host name {name[:100]!r}. Use localhost, or allow the name "
                f"with {self.hosts_setting}."
            )
        if headers.get("sec-fetch-site") == "cross-site":
            raise Forbidden("Requests from other web sites are refused.")
        origin = headers.get("origin")
        if origin is not None and host_name(origin.partition("://")[2]) not in self.hosts:
            raise Forbidden(
                f"Requests from {origin[:100]!r} are refused. Allow its host name with {self.hosts_setting}."
            )

    def check_key(self, headers: Mapping[str, str]) -> None:
        """Constant-time, so that the answer's time tells nothing about the key."""
        if not self.key:
            return
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(key.strip().encode("latin-1"), self.key):
            raise Unauthorized(
                f"This {self.name} needs its key. Send it as `Authorization: Bearer KEY` ({self.key_setting})."
            )


def host_name(host: str) -> str:
    """The name in `name:port`, also for `[::1]:8000`."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _hosts(own: str, allowed: tuple[str, ...]) -> frozenset[str]:
    return frozenset({*LOOPBACK, own.lower(), *allowed} - {"0.0.0.0", "::"})  # noqa: S104
