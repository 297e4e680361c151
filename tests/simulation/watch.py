"""Promises that the replicas of a cluster must keep after every step.

No partition of a broker is looked at again until it has changed, or its state in ZooKeeper has, so
that a step costs little. The states themselves are checked by StateHistory.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

from kafka08.cluster.partition import NO_EPOCH, Partition
from kafka08.common import TopicPartition
from kafka08.server.replication.roles import Roles
from tests.simulation.broker import SimulatedBroker
from tests.simulation.scheduler import SimulatedTask
from tests.simulation.stability import Stability
from tests.simulation.world import SimulatedWorld


class Shown(NamedTuple):
    """A replica at one moment. ``newest_epoch``: the highest leader epoch that it has known."""

    is_leader: bool
    leader_epoch: int
    newest_epoch: int
    leadership_start: int
    high_watermark: int
    first_offset: int
    log_end_offset: int


# A partition, and Shown as a plain tuple: one is made at every step.
_Seen = tuple[Partition | None, tuple[bool, int, int, int, int, int, int] | None]
_NOTHING: _Seen = (None, None)


class Watchman:
    """Raises AssertionError as soon as a promise is broken:

    - a high watermark is not above its log's end; a leader's does not go back in its epoch, and
      nor does the first offset;
    - a broker obeys no epoch of a leader or a controller below one that it knew, and begins to lead
      once in an epoch;
    - each live member of the isr has all that any leader has shown to consumers;
    - what a leader has shown as stable stays so.

    ``exempt``: the brokers whose logs may have lost their ends, by a power cut.
    """

    def __init__(self, world: SimulatedWorld) -> None:
        self.exempt: set[int] = set()
        self._world = world
        self._brokers = {each.host: each for each in world.brokers.values()}
        self._seen: dict[str, dict[TopicPartition, _Seen]] = {}
        self._history = world.sessions.history
        self._committed = world.committed
        self._stability = Stability()
        self._controllers: WeakKeyDictionary[Roles, int] = WeakKeyDictionary()

    def look(self, task: SimulatedTask | None) -> None:
        """After a step of ``task``, or of time."""
        changed = self._history.changed
        while changed:
            self._check_isr(changed.popitem()[0])
        broker = None if task is None else self._brokers.get(task.process.name)
        if broker is not None and not broker.runtime.is_dead:
            self._look_at(broker)

    def _look_at(self, broker: SimulatedBroker) -> None:
        rooms = broker.rooms
        if rooms is None:
            return
        self._check_controller(broker, rooms.replication.roles)
        replicas = rooms.storage.replicas
        seen = self._seen.setdefault(broker.host, {})
        if not seen.keys() <= replicas.partitions.keys():
            # Of what is there now alone: a log that nobody uses any more closes its files.
            for name in list(seen.keys() - replicas.partitions.keys()):
                del seen[name]
        for name, partition in replicas.partitions.items():
            log = partition.log
            if log is None:
                seen.pop(name, None)
                continue
            known, before = seen.get(name, _NOTHING)
            epoch = partition.leader_epoch
            now = (
                partition.is_leader,
                epoch,
                epoch if before is None or known is not partition else max(before[2], epoch),
                partition.leadership_start,
                partition.high_watermark,
                log.first_offset,
                log.log_end_offset,
            )
            if now != before or known is not partition:
                seen[name] = partition, now
                shown = None if before is None or known is not partition else Shown(*before)
                self._compare(broker, name, shown, Shown(*now))
                if partition.is_leader and broker.id not in self.exempt:
                    self._stability.look(partition)

    def _compare(
        self, broker: SimulatedBroker, name: TopicPartition, before: Shown | None, now: Shown
    ) -> None:
        who = f"{name} on {broker.host}"
        assert now.high_watermark <= now.log_end_offset, f"{who} is beyond its end: {now}"
        if before is not None:
            obeys = now.leader_epoch in (NO_EPOCH, now.newest_epoch)
            assert obeys, f"{who} obeys an old epoch: {before} became {now}"
            is_same = before.leader_epoch == now.leader_epoch
            if is_same and before.is_leader and now.is_leader:
                goes_back = (
                    now.high_watermark < before.high_watermark
                    or now.first_offset < before.first_offset
                    or now.leadership_start != before.leadership_start
                )
                assert not goes_back, f"{who} goes back from {before} to {now}"
        if now.is_leader and broker.id not in self.exempt:
            self._committed[name] = max(self._committed.get(name, 0), now.high_watermark)
        self._check_isr(name)

    def _check_controller(self, broker: SimulatedBroker, roles: Roles) -> None:
        epoch = roles.controller_epoch
        known = self._controllers.get(roles, epoch)
        assert epoch >= known, f"{broker.host} obeys a controller of {epoch} after one of {known}"
        self._controllers[roles] = epoch

    def _check_isr(self, name: TopicPartition) -> None:
        """Whether the live members of the isr have what any leader has committed."""
        state = self._history.states.get(name)
        # Its log may be gone already, or one of an earlier topic of that name still there.
        if state is None or name.topic in self._history.given_up:
            return
        committed = self._committed.get(name, 0)
        for number in state.isr:
            end = self._end(number, name)
            assert end is None or end >= committed, (
                f"{name}: broker {number} of the isr {state.isr} of epoch {state.leader_epoch} "
                f"ends at {end}, the high watermark was {committed}"
            )

    def _partition(self, number: int, name: TopicPartition) -> Partition | None:
        broker = self._world.brokers[number]
        replicas = None if broker.runtime.is_dead else broker.replicas
        return None if replicas is None else replicas.partitions.get(name)

    def _end(self, number: int, name: TopicPartition) -> int | None:
        """Of the log on a broker; None if it is not to be judged."""
        partition = None if number in self.exempt else self._partition(number, name)
        if partition is None or partition.log is None:
            return None
        return partition.log.log_end_offset
