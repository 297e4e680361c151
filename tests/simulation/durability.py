"""The part that power cuts leave of the promise that nothing acknowledged is lost.

Brokers acknowledge before they sync, as in 0.8. With acks -1 and min.insync.replicas 2 what is
acknowledged is on two machines at least, so that the others have what a power cut takes from one.
It fetches that again, and all is kept, unless it leads first: while the others are down, or have
lost their power too, any member of the isr may be elected. Messages that were acknowledged beyond
the end of its log may then be lost, no others.

A process that is killed keeps all that its leaders count as stored by it; so does a machine without
power if brokers sync before they answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kafka08.cluster.partition import Partition
from kafka08.common import TopicPartition
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from tests.simulation.broker import SimulatedBroker
from tests.simulation.sessions import SimulatedSessions
from zk import znodes
from zk.znodes import PartitionStateNode

_ENOUGH = 2
"""So many replicas have what is acknowledged."""


class Durability:
    """``is_synced``: brokers sync before they answer. ``behind``: those whose disks may lack
    something acknowledged. ``exposed``: the partitions that one of them has begun to lead, with the
    end of its log then."""

    def __init__(
        self,
        sessions: SimulatedSessions,
        brokers: dict[int, SimulatedBroker],
        *,
        is_synced: bool = False,
    ) -> None:
        self.is_synced = is_synced
        self.behind: set[int] = set()
        self.exposed: dict[TopicPartition, int] = {}
        self._sessions = sessions
        self._brokers = brokers
        self._owed: dict[int, Mapping[TopicPartition, int]] = {}

    def lost(self, broker: SimulatedBroker) -> None:
        """The machine of a broker does not come back."""
        self.behind.add(broker.id)

    def power_cut(self, broker: SimulatedBroker) -> None:
        """The machine of a broker loses what was not synced."""
        if not self.is_synced:
            self.behind.add(broker.id)

    def dies(self, broker: SimulatedBroker) -> None:
        """As ``Witness``."""
        if broker.replicas is not None:
            self._owed[broker.id] = dict(self._counted(broker))

    def _counted(self, broker: SimulatedBroker) -> Iterator[tuple[TopicPartition, int]]:
        """Up to where its logs are counted as stored, by the leader of each."""
        assert broker.replicas is not None
        for key, partition in broker.replicas.partitions.items():
            if partition.log is None:
                continue
            end = _stored_end(partition.log)
            if partition.is_leader:
                yield key, min(partition.high_watermark, end)
            state = self._state(key)
            leader = None if state is None else self._brokers.get(state.leader)
            there = None if leader is None else leader.replicas
            led = None if there is None else there.partitions.get(key)
            if led is None or led.leader_epoch != partition.leader_epoch:
                continue
            remote = led.remote.get(broker.id)
            if remote is not None:
                yield key, min(remote.log_end_offset, end)

    def has_loaded(self, broker: SimulatedBroker, manager: LogManager) -> None:
        """As ``Witness``. Raises AssertionError if one of its logs lacks what it owes."""
        owed = self._owed.pop(broker.id, {})
        if manager.lost_at_start or broker.id in self.behind:
            return
        for key, end in owed.items():
            log = manager.logs.get(key)
            found = 0 if log is None else log.log_end_offset
            assert found >= end, (
                f"{key} on {broker.host} ends at {found}, below {end}, which its leader counts"
            )

    def may_lose(self, broker: SimulatedBroker) -> bool:
        """Whether others have what a power cut takes from it, unless it leads before it has caught
        up."""
        if self.is_synced:
            return True
        self.review()
        return self.behind <= {broker.id} and all(
            state is None or broker.id not in state.isr or len(state.isr) >= _ENOUGH
            for state in map(self._state, self._partitions())
        )

    def may_leave(self, broker: SimulatedBroker) -> bool:
        """Whether it may stay away: enough brokers are left to go on, and one of them has all that
        is acknowledged."""
        self.review()
        staying = [each for each in self._brokers.values() if not each.is_gone]
        return (
            len(staying) > _ENOUGH
            and not self.behind
            and all(
                broker.id not in state.isr or len(state.isr) >= _ENOUGH
                for state in map(self._state, self._partitions())
                if state is not None
            )
        )

    def review(self) -> None:
        """See who has caught up."""
        self.behind -= {each for each in self.behind if self._has_all(self._brokers[each])}

    def _has_all(self, broker: SimulatedBroker) -> bool:
        """Whether a broker has everything committed in its partitions, and another one too."""
        return (
            broker.has_started
            and not broker.is_ending
            and all(
                self._is_safe(broker, key, replicas) for key, replicas in self._partitions().items()
            )
        )

    def _is_safe(
        self, broker: SimulatedBroker, key: TopicPartition, replicas: tuple[int, ...]
    ) -> bool:
        if broker.id not in replicas:
            return True
        state = self._state(key)
        if state is None or broker.id not in state.isr or state.leader not in self._brokers:
            return False
        leader = self._brokers[state.leader].replicas
        if leader is None or key not in leader.partitions:
            return False
        led = leader.partitions[key]
        # One that has just begun to lead may know too low a high watermark.
        committed = max(led.high_watermark, led.leadership_start)
        have = [each for each in state.isr if self._end(each, key) >= committed]
        return broker.id in have and len(have) >= min(_ENOUGH, len(replicas))

    def leads(self, partition: Partition) -> None:
        """A broker begins to lead a partition."""
        if partition.broker_id in self.behind:
            self.exposed[partition.topic_partition] = partition.leadership_start

    # The cluster

    def _partitions(self) -> dict[TopicPartition, tuple[int, ...]]:
        return dict(self._assigned())

    def _assigned(self) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
        nodes = self._sessions.ensemble.tree.nodes
        topics = nodes.get(znodes.BROKER_TOPICS)
        for topic in () if topics is None else topics.children:
            path = znodes.topic_path(topic)
            for partition, replicas in znodes.decode_topic(path, nodes[path].data).items():
                yield TopicPartition(topic, partition), replicas

    def _state(self, key: TopicPartition) -> PartitionStateNode | None:
        path = znodes.partition_state_path(*key)
        data = self._sessions.data(path)
        return None if data is None else znodes.decode_partition_state(path, data)

    def _end(self, number: int, key: TopicPartition) -> int:
        """Of the log on a broker; -1 without it."""
        replicas = self._brokers[number].replicas
        partition = None if replicas is None else replicas.partitions.get(key)
        log = None if partition is None else partition.log
        return -1 if log is None else log.log_end_offset


def _stored_end(log: Log) -> int:
    """Where it will end if it is loaded again. A compacted log that is cut may have no entry left
    near the cut: what lay above is gone, and compaction had taken what lay below. Nothing that was
    acknowledged is missing then, and no file says where the cut was."""
    return log.files.active.next_offset()[0] if log.config.compact else log.log_end_offset
