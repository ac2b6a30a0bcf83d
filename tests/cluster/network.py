"""Machines that one can cut off: network namespaces on one bridge. Needs root, iproute2 and nftables."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

NEEDED = ("ip", "nft", "setpriv", "haproxy")
# On a machine, ports of loopback that lead to other machines: kb trusts a server without TLS only on its own machine.
FORWARD = """
table ip kb {{
 chain out {{
  type nat hook output priority -100
{rules}
 }}
 chain post {{
  type nat hook postrouting priority 100
  oifname "eth0" masquerade
 }}
}}
"""


@dataclass(frozen=True, slots=True)
class Machine:
    name: str  # of its namespace, and of its end of the cable
    address: str

    @property
    def inside(self) -> tuple[str, ...]:
        """What starts a program on this machine."""
        return ("ip", "netns", "exec", self.name)


def missing() -> str | None:
    """What keeps this computer from having such machines, and what to do about it."""
    if os.geteuid():
        return "it makes network namespaces: run it as root"
    if absent := [name for name in NEEDED if shutil.which(name) is None]:
        return f"{', '.join(absent)} not found: apt-get install iproute2 nftables util-linux haproxy"
    return None


class Network:
    """A bridge and the machines on it. All of it goes away at the end."""

    def __init__(self) -> None:
        number = os.getpid()
        self._bridge = f"kb{number}"
        self._subnet = f"10.{64 + number % 128}.{number // 128 % 256}"
        self._machines: list[Machine] = []

    @property
    def subnet(self) -> str:
        return f"{self._subnet}.0/24"

    def __enter__(self) -> Self:
        _run("ip", "link", "add", self._bridge, "type", "bridge")
        _run("ip", "addr", "add", f"{self._subnet}.1/24", "dev", self._bridge)
        _run("ip", "link", "set", self._bridge, "up")
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for machine in self._machines:
            subprocess.run(["ip", "netns", "del", machine.name], check=False)
        subprocess.run(["ip", "link", "del", self._bridge], check=False)

    def machine(self, name: str) -> Machine:
        machine = Machine(f"{self._bridge}{name}", f"{self._subnet}.{10 + len(self._machines)}")
        _run("ip", "netns", "add", machine.name)
        self._machines.append(machine)
        _run("ip", "link", "add", machine.name, "type", "veth", "peer", "name", "eth0", "netns", machine.name)
        _run("ip", "link", "set", machine.name, "master", self._bridge, "up")
        _run("ip", "-n", machine.name, "addr", "add", f"{machine.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _run("ip", "-n", machine.name, "link", "set", device, "up")
        return machine

    def forward(self, machine: Machine, ports: Mapping[int, str]) -> None:
        """On this machine, these ports of 127.0.0.1 lead to those addresses."""
        rules = "\n".join(f"  ip daddr 127.0.0.1 tcp dport {port} dnat to {to}" for port, to in ports.items())
        route = "echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet && nft -f -"
        _run(*machine.inside, "sh", "-c", route, given=FORWARD.format(rules=rules))

    def cut(self, machine: Machine) -> None:
        """Pull the cable: packets vanish, no connection is told."""
        _run("ip", "link", "set", machine.name, "nomaster")

    def heal(self, machine: Machine) -> None:
        _run("ip", "link", "set", machine.name, "master", self._bridge)


def _run(*command: str, given: str = "") -> None:
    subprocess.run(command, input=given.encode(), check=True)
