"""Partitions that the caller chose, read without other members of a group.

The parts that such a consumer has: the group's offsets with their coordinator, the fetchers, and
the stream of all messages. The caller decides where to begin, and when to commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka08.common import Broker, TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.fetcher import ConsumerFetcherManager
from kafka08.consumer.offset_store import coordinator_offsets
from kafka08.consumer.stream import KafkaStream, PartitionPosition
from kafka08.errors import raise_for_code
from kafka08.network.channel import Channel, Connect
from kafka08.runtime import Event, Runtime


class AssignedConsumer:
    """``brokers`` returns the live brokers. ``name`` names the tasks of the fetchers; ``group`` and
    ``timeout_ms`` (of the stream) replace those of ``config``. Waits for the coordinator end when
    ``stopping`` is set. One caller at a time.

    ``offsets``: those that the group committed. ``positions``: those of the partitions that are
    read. ``stream``: their messages, which the ``fetchers`` bring.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        brokers: Callable[[], Sequence[Broker]],
        *,
        runtime: Runtime,
        name: str | None = None,
        group: str | None = None,
        timeout_ms: int | None = None,
        stopping: Event | None = None,
        channel: Connect = Channel,
    ) -> None:
        self.offsets = coordinator_offsets(
            config, brokers, group=group, stopping=stopping, runtime=runtime, channel=channel
        )
        self.positions: dict[TopicPartition, PartitionPosition] = {}
        self.stream = KafkaStream(
            runtime.queue(config.queued_max_message_chunks),
            timeout_ms=config.consumer_timeout_ms if timeout_ms is None else timeout_ms,
        )
        self.fetchers = ConsumerFetcherManager(
            name or config.client_id, config, brokers, runtime=runtime, channel=channel
        )

    def start(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Begin to fetch at these next offsets; -1 is by auto.offset.reset."""
        self.fetchers.start(self._added(offsets))

    def add(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.fetchers.give_back(self._added(offsets))

    def _added(self, offsets: Mapping[TopicPartition, int]) -> Iterable[PartitionPosition]:
        added = {tp: PartitionPosition(tp, at, self.stream) for tp, at in offsets.items()}
        self.positions.update(added)
        return added.values()

    def stop(self) -> None:
        """Stop fetching. Messages that were fetched stay in the stream."""
        self.fetchers.stop()

    def drop(self) -> dict[TopicPartition, int]:
        """Stop fetching and forget the partitions, also what was fetched of them and not read. The
        offset after the last message that was read, for those that have one."""
        self.stop()
        self.stream.clear()
        dropped, self.positions = self.positions, {}
        for position in dropped.values():
            position.owned = False
        return {tp: p.consumed_offset for tp, p in dropped.items() if p.consumed_offset >= 0}


def raise_refused(codes: Mapping[TopicPartition, int]) -> None:
    """Raise the error with which the commit of a partition was refused."""
    for tp, code in codes.items():
        raise_for_code(code, f"The offset of {tp} was not committed: code {code}")
