"""The transactional ids that this broker coordinates: in memory, and in ``__transaction_state``.

An id belongs to the broker that leads its partition of that topic. A change counts once its record
has the acks of the whole isr; only then it is in memory. While it is written, the id takes no other
change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Set

from kafka08.cluster.partition import Partition
from kafka08.common import TRANSACTIONS_TOPIC, TopicPartition
from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailableError,
    KafkaError,
    NotCoordinatorForConsumerError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    OffsetsLoadInProgressError,
    ProtocolError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    code_of,
)
from kafka08.log import numbering
from kafka08.log.log import Log
from kafka08.message.record_sets import encode_records
from kafka08.message.scan import walk
from kafka08.message.sets import iter_messages
from kafka08.runtime import Event, Runtime
from kafka08.server.replication.acks import await_acks
from kafka08.server.storage.replica_manager import ReplicaManager
from kafka08.server.storage.state_topic import StateTopic
from kafka08.server.transactions.records import (
    Transaction,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from kafka08.server.transactions.states import PREDECESSORS, TransactionState
from kafka08.settings.broker import BrokerConfig

logger = logging.getLogger("kafka.coordinator.transaction.TransactionStateManager")

_LONGEST_APPEND_MS = 30_000

# The codes of an append, as clients of the coordinator get them; all others become -1.
_CODES = {
    NO_ERROR: NO_ERROR,
    UnknownTopicOrPartitionError.code: ConsumerCoordinatorNotAvailableError.code,
    NotEnoughReplicasError.code: ConsumerCoordinatorNotAvailableError.code,
    NotEnoughReplicasAfterAppendError.code: ConsumerCoordinatorNotAvailableError.code,
    RequestTimedOutError.code: ConsumerCoordinatorNotAvailableError.code,
    NotLeaderForPartitionError.code: NotCoordinatorForConsumerError.code,
}


class Entry:
    """A transactional id. ``pending``: the state that is being written. ``changed`` is set and
    replaced whenever a change has been written or has failed."""

    __slots__ = ("changed", "current", "pending")

    def __init__(self, current: Transaction, changed: Event) -> None:
        self.current = current
        self.pending: TransactionState | None = None
        self.changed = changed

    @property
    def is_new(self) -> bool:
        """Nothing of it is stored."""
        return self.current.producer_id < 0


class Led:
    """A partition of the topic that is led here: its ids, and its leader ``epoch``, which is the
    epoch of their coordinator. ``is_over``: it is led no more."""

    __slots__ = ("entries", "epoch", "is_over", "number")

    def __init__(self, number: int, epoch: int) -> None:
        self.number = number
        self.epoch = epoch
        self.entries: dict[str, Entry] = {}
        self.is_over = False


class TransactionStore:
    """``taken_over`` is called with a partition whose ids have been read."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        replicas: ReplicaManager,
        taken_over: Callable[[Led], None],
    ) -> None:
        self._runtime = runtime
        self._replicas = replicas
        self._taken_over = taken_over
        self._led: dict[int, Led] = {}
        count = config.transaction_state_log_num_partitions
        self._topic = StateTopic(
            runtime, replicas, TRANSACTIONS_TOPIC, count, self._loader, self._forget
        )
        self.leadership_changed = self._topic.leadership_changed
        self.partition_for = self._topic.partition_for

    def partitions_deleted(self, deleted: Set[TopicPartition]) -> None:
        """Transactions keep partitions that were deleted: they need no marker in the end."""

    def led(self, id_: str) -> Led | int:
        """The partition of an id, or 16 or 14."""
        code = self._topic.check(id_)
        if code:
            return code
        found = self._led.get(self.partition_for(id_).partition)
        # Without one its log could not be read: nothing may be said about its ids.
        return OffsetsLoadInProgressError.code if found is None else found

    @property
    def is_loading(self) -> bool:
        return bool(self._topic.loading)

    def all(self) -> Iterator[tuple[Led, Entry]]:
        """All ids that are coordinated here, as they are now."""
        for led in list(self._led.values()):
            for entry in list(led.entries.values()):
                if not entry.is_new:
                    yield led, entry

    def entry(self, led: Led, new: Transaction) -> Entry:
        """The entry of an id, ``new`` if there is none. The caller drops one that stays new."""
        found = led.entries.get(new.id)
        if found is None:
            found = led.entries[new.id] = Entry(new, self._runtime.event())
        return found

    def drop_if_new(self, led: Led, entry: Entry) -> None:
        """Forget an id of which nothing could be stored."""
        if entry.is_new and not entry.pending:
            led.entries.pop(entry.current.id, None)

    def write(self, led: Led, entry: Entry, new: Transaction) -> int:
        """Write a change, and wait for its acks; the wire code. The entry has it if that is 0.

        Raises KafkaError for a change that no table allows: the caller has a fault.
        """
        before = entry.current.state
        if before not in PREDECESSORS[new.state]:
            raise KafkaError(f"{new.id} cannot become {new.state.value}: it is {before.value}")
        entry.pending = new.state
        try:
            code = self._append(led, encode_key(new.id), encode_value(new), new.timeout_ms)
            if not code:
                entry.current = new
        finally:
            entry.pending = None
            self._tell(entry)
        return code

    def remove(self, led: Led, entry: Entry) -> int:
        """Forget an id that has expired; the wire code."""
        entry.pending = TransactionState.DEAD
        try:
            code = self._append(led, encode_key(entry.current.id), None, _LONGEST_APPEND_MS)
            if not code:
                led.entries.pop(entry.current.id, None)
        finally:
            entry.pending = None
            self._tell(entry)
        return code

    def _tell(self, entry: Entry) -> None:
        changed, entry.changed = entry.changed, self._runtime.event()
        changed.set()

    def _append(self, led: Led, key: bytes, value: bytes | None, timeout_ms: int) -> int:
        partition = TopicPartition(TRANSACTIONS_TOPIC, led.number)
        now = self._runtime.clock.millis()
        data = memoryview(bytearray(encode_records([value], [key], [now], None)))
        try:
            if led.is_over:
                return NotCoordinatorForConsumerError.code
            log = self._replicas.partition(partition).leader_log()
            numbered = numbering.of_coordinator(data, log.log_end_offset, log.rules, log.config)
            appended = self._replicas.append_messages(partition, data, -1, numbered=numbered)
        except Exception as error:
            if not isinstance(error, KafkaError):
                logger.exception("Could not append to %s", partition)
            return _CODES.get(code_of(error), -1)
        timeout_ms = min(timeout_ms, _LONGEST_APPEND_MS)
        required = {partition: appended.last_offset + 1}
        code = await_acks(self._replicas, required, -1, timeout_ms)[partition]
        if (
            not code and self._led.get(led.number) is not led
        ):  # another coordinator may have changed it since
            code = NotLeaderForPartitionError.code
        return _CODES.get(code, -1)

    # Leadership

    def stop(self) -> None:
        """Stop loading, and lead none any more."""
        self._topic.stop()
        for number in list(self._led):
            self._forget(number)

    def _forget(self, number: int) -> None:
        led = self._led.pop(number, None)
        if led is not None:
            led.is_over = True
            for entry in led.entries.values():
                self._tell(entry)

    def _loader(self, partition: Partition, log: Log) -> _Loader:
        led = Led(partition.topic_partition.partition, partition.leader_epoch)
        return _Loader(led, self._runtime.event, self._loaded)

    def _loaded(self, led: Led) -> None:
        self._led[led.number] = led
        self._taken_over(led)


class _Loader:
    """Takes the records of one partition of the topic."""

    def __init__(self, led: Led, event: Callable[[], Event], loaded: Callable[[Led], None]) -> None:
        self._led = led
        self._event = event
        self._loaded = loaded

    def take(self, data: bytes) -> int | None:
        """As ``state_topic.Loader``."""
        walked = walk(data, 0, len(data), wrappers=True)
        entries = self._led.entries
        for message in iter_messages(data[: walked.stop]):
            try:
                id_ = decode_key(message.key or b"")
                if message.value is None:
                    entries.pop(id_, None)
                else:
                    entries[id_] = Entry(decode_value(id_, message.value), self._event())
            except ProtocolError as error:
                logger.warning(
                    "Skipping the record at offset %d of %s-%d: %s",
                    *(message.offset, TRANSACTIONS_TOPIC, self._led.number, error),
                )
        return walked.last + 1 if walked.count else None

    def finish(self) -> None:
        """As ``state_topic.Loader``."""
        self._loaded(self._led)
