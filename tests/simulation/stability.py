"""Offsets that a leader has shown as stable stay so: none has a transaction open below later."""

from __future__ import annotations

from kafka08.cluster.partition import Partition
from kafka08.common import TopicPartition


class Stability:
    """Raises AssertionError as soon as readers of committed transactions would be held back where
    they have been."""

    def __init__(self) -> None:
        self._shown: dict[TopicPartition, tuple[int, int]] = {}

    def look(self, partition: Partition) -> None:
        """At a leader whose log or high watermark has changed. One of an earlier leader epoch has
        not heard yet what has ended since."""
        assert partition.log is not None
        name, epoch = partition.topic_partition, partition.leader_epoch
        known, stable = self._shown.get(name, (epoch, 0))
        if epoch < known:
            return
        starts = partition.log.producers.states.open.values()
        first = min(starts, default=stable)
        assert first >= stable, (
            f"{name} has a transaction open from {first} in epoch {epoch}, and was stable up to "
            f"{stable} in epoch {known}"
        )
        self._shown[name] = epoch, max(stable, partition.last_stable_offset)
