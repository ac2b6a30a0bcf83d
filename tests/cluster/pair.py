"""A primary and its synchronous standby, which change places. This is the operator's script, without a consensus."""

import time

from cluster.network import Network
from cluster.server import PORT, Server

SOUND_SECONDS = 60
FIRST_LOCAL_PORT = 5001


class Pair:
    """`primary` takes writes; what it acknowledges, `standby` has too."""

    def __init__(self, network: Network, primary: Server, standby: Server) -> None:
        self._network = network
        self._both = (primary, standby)
        self.primary, self.standby = primary, standby
        primary.create()
        self.repair()

    @property
    def url(self) -> str:
        """For an engine, on whose machine both servers have a port of loopback."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        return f"postgresql://postgres@{hosts}/postgres"

    @property
    def ports(self) -> dict[int, str]:
        return {FIRST_LOCAL_PORT + n: f"{one.machine.address}:{PORT}" for n, one in enumerate(self._both)}

    def repair(self) -> None:
        """Make the standby anew from the primary, and synchronous."""
        self.standby.follow(self.primary)
        self.until_streaming()
        self.primary.configure(synchronous_standby_names="*")
        end = time.monotonic() + SOUND_SECONDS
        while self._state("sync_state") != "sync":
            assert time.monotonic() < end, "the standby does not become synchronous"
            time.sleep(0.05)

    def until_streaming(self) -> None:
        end = time.monotonic() + SOUND_SECONDS
        while self._state("state") != "streaming":
            assert time.monotonic() < end, "the standby does not follow"
            time.sleep(0.05)

    def promote(self) -> float:
        """Promote the standby after the primary's end; when that began. It writes alone until it has a standby."""
        began = time.monotonic()
        self.primary.kill()  # a primary that may still live is ended first, wherever it is
        self.primary, self.standby = self.standby, self.primary
        self.primary.configure()
        self.primary.promote()
        self._network.heal(self.standby.machine)
        return began

    def close(self) -> None:
        for server in self._both:
            server.kill()

    def _state(self, column: str) -> str | None:
        found = self.primary.ask(f"SELECT {column} FROM pg_stat_replication")
        return str(found[0][0]) if found else None
