"""Which engines live, and which one of them tidies up.

An engine has a row while it lives and beats it every few seconds. The one that has lived longest leads: it alone
removes engines that were not seen for a while, sweeps, empties the trash and keeps watched folders in step.
"""

import time
from collections.abc import Sequence

from kb import __version__
from kb.core.status import EngineInfo, EngineState
from kb.core.times import stamp
from kb.store.backend import Beat
from kb.store.postgres.runner import Connection, executed
from kb.store.postgres.transaction import LEASE_SECONDS

# An engine that was in the same data folder is dead: the folder was locked by it.
SUCCEED = "DELETE FROM engines WHERE place = :place"
ENTER = """
INSERT INTO engines (id, place, address, version, state) VALUES (:id, :place, :address, :version, :state)
ON CONFLICT (id) DO NOTHING
"""
BEAT = """
UPDATE engines SET seen_at = clock_timestamp(), applied_seq = :applied, state = :state WHERE id = :id
RETURNING (SELECT count(*) FROM engines),
          id = (SELECT id FROM engines WHERE seen_at > clock_timestamp() - make_interval(secs => :lease) OR id = :id
                 ORDER BY started_at, id LIMIT 1)
"""
RENEW = """
UPDATE jobs SET lease_until = clock_timestamp() + make_interval(secs => :lease)
 WHERE id = ANY(:running) AND claimed_by = :id AND status = 'running' RETURNING id, cancelling
"""
BURY = "DELETE FROM engines WHERE seen_at < clock_timestamp() - make_interval(secs => :lease) AND id <> :id"
LEFT = """
SELECT EXISTS (SELECT 1 FROM jobs WHERE status = 'running'
                  AND (claimed_by IS NULL OR lease_until < clock_timestamp()
                       OR claimed_by NOT IN (SELECT id FROM engines)))
    OR EXISTS (SELECT 1 FROM drafts WHERE engine NOT IN (SELECT id FROM engines))
"""
ENGINES = """
SELECT id, address, version, state, seen_at, applied_seq, (SELECT seq FROM head),
       id = (SELECT id FROM engines WHERE seen_at > clock_timestamp() - make_interval(secs => :lease)
              ORDER BY started_at, id LIMIT 1), id = :id
  FROM engines ORDER BY started_at, id
"""
LEAVE = "DELETE FROM engines WHERE id = :id"


class Presence:
    def __init__(self, engine: str, place: str, address: str) -> None:
        self.engine = engine
        self._about = {"id": engine, "place": place, "address": address, "version": __version__}
        self.leads = False
        self.living = 1
        self._since = 0.0  # when it was last connected anew, on the monotonic clock
        self._seen = 0.0  # when it last beat

    def enter(self, connection: Connection) -> None:
        executed(connection, SUCCEED, self._about)
        executed(connection, ENTER, self._about | {"state": "starting"})

    def beat(self, connection: Connection, running: Sequence[str], state: EngineState, applied: int) -> Beat:
        """Say that this engine lives, and renew the leases of the jobs that it runs."""
        moment = time.monotonic()
        if moment - self._seen > LEASE_SECONDS / 2:
            self._since = moment
        own = {"id": self.engine, "lease": LEASE_SECONDS}
        found = executed(connection, BEAT, own | {"applied": applied, "state": state}).fetchone()
        if found is None:  # it was taken for dead
            executed(connection, ENTER, self._about | {"state": state})
        renewed = executed(connection, RENEW, own | {"running": list(running)}).fetchall() if running else []
        held = {str(id_): bool(cancelling) for id_, cancelling in renewed}
        self._seen = moment
        self.living, leads = (found[0], found[1]) if found else (self.living, False)
        self.leads = leads
        # Others may have been cut off from the database as this one was: they get the time to say that they live.
        if tidies := leads and moment - self._since > LEASE_SECONDS:
            executed(connection, BURY, own)
        return Beat(
            leads=leads,
            alone=self.living == 1,
            left=tidies and executed(connection, LEFT).fetchone() == (True,),
            lost=frozenset(set(running) - held.keys()),
            cancelling=frozenset(id_ for id_, cancelling in held.items() if cancelling),
        )

    def engines(self, connection: Connection) -> list[EngineInfo]:
        rows = executed(connection, ENGINES, {"id": self.engine, "lease": LEASE_SECONDS}).fetchall()
        return [
            EngineInfo(id_, address, version, state, stamp(seen), applied, max(head - applied, 0), leads, own)
            for id_, address, version, state, seen, applied, head, leads, own in rows
        ]

    def leave(self, connection: Connection) -> None:
        executed(connection, LEAVE, self._about)
