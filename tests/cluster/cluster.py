"""All parts of a cluster: two servers of PostgreSQL, the engines, and the load balancer before them."""

import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cluster.balancer import Balancer
from cluster.network import Machine, Network
from cluster.pair import Pair
from cluster.server import Server
from crash.target import Target
from support import Http

CAUGHT_UP_SECONDS = 30
SCHEMA = "crash"  # of the engines of crash.target
HEAD = f"SELECT seq FROM {SCHEMA}.head"


class Servers(Protocol):
    """A primary and its standby, as far as engines see them."""

    @property
    def url(self) -> str: ...

    @property
    def ports(self) -> Mapping[int, str]:
        """Where each port of loopback leads on the machine of an engine."""

    @property
    def primary(self) -> Server: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Cluster:
    network: Network
    servers: Servers
    engines: list[Target]
    machines: list[Machine]  # of the engines
    balancer: Balancer

    def until_sound(self) -> None:
        """Until every engine answers and has applied what is written."""
        for engine in self.engines:
            engine.until_ready()
        self.balancer.until_ready()
        head = self.servers.primary.ask(HEAD)[0][0]
        end = time.monotonic() + CAUGHT_UP_SECONDS
        for engine in self.engines:
            while applied(engine.http) < head:
                assert time.monotonic() < end, f"{engine.http.url} stays behind: {applied(engine.http)} of {head}"
                time.sleep(0.05)


def applied(http: Http) -> float:
    """The number of the last change that an engine's memory has."""
    return metric(http, "kb_applied_seq")


def metric(http: Http, name: str) -> float:
    for line in http("GET", "/metrics").body.decode().splitlines():
        if line.startswith(f"{name} "):
            return float(line.split()[1])
    raise AssertionError(f"there is no metric {name}")


def pair_of(network: Network, folder: Path) -> Pair:
    primary, standby = (Server(network.machine(name), folder / name, network.subnet) for name in ("db1", "db2"))
    return Pair(network, primary, standby)


@contextmanager
def running(
    count: int, programs: Sequence[Sequence[str]] = (), servers: Callable[[Network, Path], Servers] = pair_of
) -> Iterator[Cluster]:
    """A cluster of `count` engines; `programs` start the interpreters of the first ones."""
    with ExitStack() as stack:
        # Its parts run as different users.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kb-cluster-")))
        folder.chmod(0o755)
        network = stack.enter_context(Network())
        pair = servers(network, folder)
        stack.callback(pair.close)
        engines, machines = [], []
        for number in range(count):
            machine = network.machine(f"e{number + 1}")
            network.forward(machine, pair.ports)
            own = folder / machine.name
            own.mkdir()
            program = [*machine.inside, *(programs[number] if number < len(programs) else ())]
            engine = Target(own, pair.url, machine.address, program)
            stack.callback(engine.kill)
            engine.until_ready()
            engines.append(engine)
            machines.append(machine)
        balancer = Balancer(engines, free_port(), folder / "haproxy.log")
        stack.callback(balancer.close)
        balancer.until_ready()
        yield Cluster(network, pair, engines, machines, balancer)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
