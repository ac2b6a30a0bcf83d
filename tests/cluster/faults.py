"""What happens to a cluster: one function for each misfortune. A seed decides their order and their victims."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from cluster.cluster import Cluster
from cluster.pair import Pair

FROZEN_SECONDS = 4.0
CUT_SECONDS = 6.0
Probe = Callable[[], float]  # adds a note; returns when that was acknowledged


@dataclass(frozen=True, slots=True)
class Fate:
    """What strikes this cluster, and the chance that decides details."""

    cluster: Cluster
    chance: random.Random
    probe: Probe

    @property
    def pair(self) -> Pair:
        assert isinstance(self.cluster.servers, Pair)
        return self.cluster.servers

    def kill_an_engine(self) -> None:
        engine = self.chance.choice(self.cluster.engines)
        engine.kill()
        time.sleep(self.chance.random())
        engine.start()

    def kill_the_primary(self) -> float:
        """All failovers return the seconds from the promotion until a write is acknowledged."""
        self.pair.primary.kill()
        return self._promote()

    def kill_the_primary_while_the_standby_is_frozen(self) -> float:
        """What the standby never got must not have been acknowledged."""
        pair = self.pair
        pair.standby.freeze()
        time.sleep(FROZEN_SECONDS * self.chance.random())
        pair.primary.kill()
        pair.standby.thaw()
        return self._promote()

    def cut_off_the_primary(self) -> float:
        """It goes on for a while as if it were the primary, and nobody hears of it."""
        pair = self.pair
        self.cluster.network.cut(pair.primary.machine)
        time.sleep(self.chance.random() * 2)
        return self._promote()

    def change_places(self) -> float:
        """The primary is stopped in order."""
        self.pair.primary.stop()
        return self._promote()

    def freeze_the_standby(self) -> None:
        """Commits wait for it, and none is believed before it is back."""
        pair = self.pair
        pair.standby.freeze()
        time.sleep(FROZEN_SECONDS)
        if self.chance.random() < 0.5:  # an engine dies whose commits wait
            self.kill_an_engine()
        pair.standby.thaw()
        pair.until_streaming()

    def cut_off_an_engine(self) -> None:
        """Others take its jobs; what it was about to publish is refused when it is back."""
        number = self.chance.randrange(len(self.cluster.engines))
        self.cluster.network.cut(self.cluster.machines[number])
        time.sleep(CUT_SECONDS + self.chance.random() * CUT_SECONDS)
        self.cluster.network.heal(self.cluster.machines[number])

    def _promote(self) -> float:
        began = self.pair.promote()
        seconds = self.probe() - began
        self.pair.repair()
        return seconds


Fault = Callable[[Fate], float | None]  # a failover returns the seconds until a write was acknowledged
FAILOVERS = (
    Fate.kill_the_primary,
    Fate.kill_the_primary_while_the_standby_is_frozen,
    Fate.cut_off_the_primary,
    Fate.change_places,
)
OTHERS = (Fate.freeze_the_standby, Fate.cut_off_an_engine)


def schedule(seed: int, rounds: int, failovers: int, others: int) -> list[Fault]:
    """Every kind of failover and of other misfortune in turn, among the rounds that kill an engine, in any order."""
    faults: list[Fault] = [Fate.kill_an_engine] * rounds
    faults += [FAILOVERS[number % len(FAILOVERS)] for number in range(failovers)]
    faults += [OTHERS[number % len(OTHERS)] for number in range(others)]
    random.Random(f"{seed} faults").shuffle(faults)
    return faults
