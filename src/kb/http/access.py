"""Access: the checks that every HTTP surface of kb makes before anything else.

A page on the web can reach localhost, and so can a page of another port of localhost. Local does not mean safe: a
foreign Host (DNS rebinding), any Origin but the address that was asked, and any request that a browser does not call
its own are refused, with a key or without.
"""

import hmac
import re
from collections.abc import Mapping
from typing import NamedTuple

from kb.core.errors import Forbidden, Unauthorized
from kb.core.settings import LOOPBACK, Settings

AUTHORITY = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^][:/?#@\\\s]+)(:(?P<port>[0-9]*))?", re.ASCII)
DEFAULT_PORTS = {"http": "80", "https": "443"}
# What a browser calls a request of the page itself, or of a person. `same-site` may be another port of this machine.
OWN_SITES = ("same-origin", "none")


class Gate(NamedTuple):
    name: str  # of the server behind it, for messages
    key: bytes  # empty: open
    key_setting: str
    hosts: frozenset[str]  # names that it answers to
    proxied: frozenset[str]  # those under which a proxy may offer it by https
    hosts_setting: str

    @classmethod
    def of_engine(cls, settings: Settings) -> "Gate":
        key, allowed = settings.api_key.encode(), frozenset(settings.allowed_hosts)
        return cls("engine", key, "KB_API_KEY", _hosts(settings.host, allowed), allowed, "KB_ALLOWED_HOSTS")

    @classmethod
    def of_mcp(cls, settings: Settings) -> "Gate":
        key, allowed = settings.mcp_api_key.encode(), frozenset(settings.mcp_allowed_hosts)
        hosts = _hosts(settings.mcp_host, allowed)
        return cls("MCP server", key, "KB_MCP_API_KEY", hosts, allowed, "KB_MCP_ALLOWED_HOSTS")

    def check_place(self, headers: Mapping[str, str]) -> None:
        """Refuse a foreign Host, and a request that a page of another site sent. Header names are in lower case."""
        host = headers.get("host", "")
        name, _ = authority(host)
        if name not in self.hosts:
            raise Forbidden(
                f"This {self.name} does not answer to the host name {(name or host)[:100]!r}. Use localhost, or allow "
                f"the name with {self.hosts_setting}."
            )
        if headers.get("sec-fetch-site", "none").lower() not in OWN_SITES:
            raise Forbidden("Requests from other web sites, and from other ports of this machine, are refused.")
        origin = headers.get("origin")
        if origin is not None and not self._is_own(origin, host):
            raise Forbidden(
                f"Requests from {origin[:100]!r} are refused: only a page of {host[:100]!r} itself may ask. A reverse "
                f"proxy must hand on the Host that it was asked for, and {self.hosts_setting} must name it."
            )

    def _is_own(self, origin: str, host: str) -> bool:
        """Whether a page of that origin came from the address that was asked.

        kb itself speaks http. An https page is its own only where TLS ends at a proxy, under a name that was allowed.
        """
        scheme, _, place = origin.lower().partition("://")
        default = DEFAULT_PORTS.get(scheme)
        name, port = authority(host)
        if default is None or authority(place, default) != (name, port or default):
            return False
        return scheme == "http" or name in self.proxied

    def check_key(self, headers: Mapping[str, str]) -> None:
        """Refuse a request without the key. The comparison takes constant time, so that timing reveals nothing."""
        if not self.key:
            return
        scheme, _, key = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(key.strip().encode("latin-1"), self.key):
            raise Unauthorized(
                f"This {self.name} needs its key. Send it as `Authorization: Bearer KEY` ({self.key_setting})."
            )


def authority(text: str, default_port: str = "") -> tuple[str, str]:
    """Name and port in `name:port`, also for `[::1]:8000`; an empty name for anything else."""
    found = AUTHORITY.fullmatch(text.lower())
    return (found["name"].strip("[]"), found["port"] or default_port) if found else ("", "")


def _hosts(own: str, allowed: frozenset[str]) -> frozenset[str]:
    return frozenset({*LOOPBACK, own.lower(), *allowed} - {"0.0.0.0", "::"})  # noqa: S104
