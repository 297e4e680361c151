"""The offsets that groups committed, in both storages, and the bounds of the logs they read.

A group of 0.8 keeps its offsets in ZooKeeper, in ``__consumer_offsets``, or in both; the tools
read and write them wherever they are. Brokers are asked over the wire; a ZooKeeper client, where
the tool has one, serves the nodes. ``members`` reads who the members are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from kafka08.client import log_offsets, requests
from kafka08.client.cluster import ClusterClient, NoBrokerError
from kafka08.client.offsets import stored_offsets
from kafka08.client.reading import PartitionReader, Position
from kafka08.client.requests import Call, Response
from kafka08.client.retry import Retry
from kafka08.client.routing import Answers, ask_leaders, by_leader
from kafka08.common import (
    EARLIEST_TIME,
    INTERNAL_TOPICS,
    LATEST_TIME,
    OFFSETS_TOPIC,
    Broker,
    TopicPartition,
)
from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailableError,
    KafkaError,
    NotCoordinatorForConsumerError,
    OffsetsLoadInProgressError,
    for_code,
    raise_for_code,
)
from kafka08.groups import nodes
from kafka08.groups.records import GroupPartition, decode_key, decode_value
from kafka08.message.batch import NO_TIMESTAMP
from kafka08.message.sets import iter_messages
from kafka08.protocol import schemas
from kafka08.protocol.group_schemas import (
    DeleteGroupsRequest,
    ListGroupsRequest,
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetDeleteTopic,
)
from kafka08.protocol.negotiation import NoApiVersionsError
from kafka08.runtime import Runtime, ThreadRuntime
from zk.client import ZkClient

logger = logging.getLogger("kafka.admin.ConsumerGroupCommand$")

NO_OFFSET = requests.NO_OFFSET
# A commit this old has outlived any offsets.retention.minutes: brokers forget it.
_LONG_AGO_MS = 1
_RETRY_S = 0.1
_NOT_NOW = (
    ConsumerCoordinatorNotAvailableError.code,
    NotCoordinatorForConsumerError.code,
    OffsetsLoadInProgressError.code,
)
T = TypeVar("T")


class CommittedOffsets(NamedTuple):
    """The next offset a group stored for a partition, by storage; None where there is none."""

    in_zookeeper: int | None = None
    in_kafka: int | None = None

    @property
    def offset(self) -> int | None:
        """The one the original's tools show: Kafka's, where there is one."""
        return self.in_zookeeper if self.in_kafka is None else self.in_kafka


class Where(NamedTuple):
    """Storages."""

    zookeeper: bool
    kafka: bool


class GroupStorage:
    """Both storages of every group of a cluster, and its logs' ends.

    Without ``zk`` the brokers read and write ZooKeeper's offsets (requests of version 0), which
    cannot remove any. ``timeout_ms`` bounds the wait for a coordinator. Calls raise OSError or
    KafkaError.
    """

    def __init__(
        self,
        cluster: ClusterClient,
        zk: ZkClient | None = None,
        *,
        timeout_ms: int = 5000,
        runtime: Runtime | None = None,
    ) -> None:
        self._cluster = cluster
        self._without_times: set[Broker] = set()
        self._zk = zk
        self._timeout_ms = timeout_ms
        self._runtime = runtime or ThreadRuntime()

    def partitions(self, topics: Iterable[str] | None = None) -> list[TopicPartition]:
        """Of the topics named that exist, or of all topics but the internal ones; sorted."""
        # Naming topics in the request would create those that are missing.
        wanted = None if topics is None else set(topics)
        return sorted(
            TopicPartition(found.topic, partition.partition)
            for found in self._cluster.refresh().topics
            for partition in found.partitions
            if (found.topic not in INTERNAL_TOPICS if wanted is None else found.topic in wanted)
        )

    # --- reading

    def committed(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, CommittedOffsets]:
        """The stored offsets by partition; partitions without any are left out."""
        wanted = list(partitions)
        in_zookeeper = self._fetch_from_zookeeper(group, wanted)
        in_kafka = _stored(partial(self._coordinator, group), group, wanted)
        found = {
            tp: CommittedOffsets(in_zookeeper.get(tp), in_kafka.get(tp))
            for tp in dict.fromkeys(wanted)
        }
        return {tp: stored for tp, stored in found.items() if stored.offset is not None}

    def _fetch_from_zookeeper(
        self, group: str, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        if self._zk is None:
            return _stored(self.any_broker, group, partitions, version=0)
        stored = nodes.offsets(self._zk, [group])[group]
        return {
            tp: stored[tp].offset for tp in partitions if tp in stored and stored[tp].offset >= 0
        }

    def groups(self) -> set[str]:
        """Every group with offsets in Kafka or coordinated members. Brokers are asked for them; if
        one does not list groups, the offsets topic is read."""
        found: set[str] = set()
        for entry in self._cluster.refresh().brokers:
            try:
                response = self._cluster.call(Broker(*entry[:3]), ListGroupsRequest())
                raise_for_code(response.error)
            except (OSError, KafkaError) as error:
                logger.debug("Broker %d does not list groups: %s", entry.node_id, error)
                return self.groups_in_kafka()
            found |= {each.group for each in response.groups}
        return found

    def groups_in_kafka(self) -> set[str]:
        """Every group with offsets in Kafka, out of the offsets topic itself."""
        live: dict[GroupPartition | str, bool] = {}
        topics = self._cluster.refresh().topics
        for partition in (p for t in topics if t.topic == OFFSETS_TOPIC for p in t.partitions):
            tp = TopicPartition(OFFSETS_TOPIC, partition.partition)
            self._read_offsets_log(tp, live)
        kept = (key for key, is_stored in live.items() if is_stored)
        return {key if isinstance(key, str) else key.group for key in kept}

    def _read_offsets_log(self, tp: TopicPartition, live: dict[GroupPartition | str, bool]) -> None:
        begin, end = self._ask_leader(tp, EARLIEST_TIME), self._ask_leader(tp, LATEST_TIME)
        if begin is None or end is None:
            return
        reader = PartitionReader(partial(self._cluster.call_leader, tp), tp, Position(begin))
        while reader.offset < end and len(data := reader.read()):
            for message in iter_messages(data):
                _note(message.key, message.value, live)

    # --- writing

    def commit(self, group: str, offsets: Mapping[TopicPartition, int], where: Where) -> None:
        """Store next offsets. Raises the error of the first that is refused."""
        if not offsets:
            return
        if where.zookeeper:
            self._commit_to_zookeeper(group, offsets)
        if where.kafka:
            _raise_any(self._coordinator(group, requests.commit_request(group, offsets)))

    def _commit_to_zookeeper(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        if self._zk is None:
            _raise_any(self.any_broker(requests.commit_request(group, offsets, version=0)))
            return
        for tp, offset in offsets.items():
            nodes.store_offset(self._zk, group, tp, offset)

    def forget_in_kafka(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Have brokers forget what is in Kafka.

        The protocol of 0.8 knows no deletion. A commit of -1 reads as nothing stored at once, and
        its old timestamp has the broker remove it when it next expires offsets.
        """
        wanted = list(dict.fromkeys(partitions))
        if not wanted or self._delete_offsets(group, wanted):
            return
        none = dict.fromkeys(wanted, NO_OFFSET)
        request = requests.commit_request(group, none, timestamp=_LONG_AGO_MS)
        _raise_any(self._coordinator(group, request))

    def _delete_offsets(self, group: str, partitions: list[TopicPartition]) -> bool:
        """Whether the coordinator has deleted them: only later releases do."""
        topics = requests.nested(
            dict.fromkeys(partitions),
            OffsetDeleteTopic,
            lambda number, _: OffsetDeletePartition(number),
        )
        try:
            response = self._cluster.call(
                self.coordinator(group), OffsetDeleteRequest(group, topics)
            )
        except (OSError, KafkaError) as error:
            logger.debug("The coordinator does not delete offsets: %s", error)
            return False
        errors = [each.error for topic in response.topics for each in topic.partitions]
        return not any([response.error, *errors])

    def delete_group(self, group: str) -> int:
        """Have the coordinator forget a group and its offsets; the code it answers, 0 also if it
        does not delete groups, as those of 0.8.2.2."""
        try:
            response = self._cluster.call(self.coordinator(group), DeleteGroupsRequest([group]))
        except (OSError, KafkaError) as error:
            logger.debug("The coordinator does not delete groups: %s", error)
            return NO_ERROR
        [result] = response.groups
        return int(result.error)

    # --- logs

    def log_starts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._log_offsets(partitions, EARLIEST_TIME)

    def log_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._log_offsets(partitions, LATEST_TIME)

    def offsets_at(
        self, partitions: Iterable[TopicPartition], time_ms: int
    ) -> dict[TopicPartition, int]:
        """The first message of each partition since a time; the end of its log if all are older.

        Brokers of 0.8.2.2 know the age of whole segments only, and messages of 0.8 have no time:
        there it is the start of the last segment that was complete by then, or of the log.
        """
        asked = {tp: self._offset_at(tp, time_ms) for tp in partitions}
        return {tp: offset for tp, offset in asked.items() if offset is not None}

    def _offset_at(self, tp: TopicPartition, time_ms: int) -> int | None:
        """None when no leader answers."""
        try:
            leader = self._cluster.leader(tp)
            if leader not in self._without_times:
                found = self._message_since(leader, tp, time_ms)
                if found is not None:
                    return found
        except NoApiVersionsError as error:
            self._without_times.add(leader)
            logger.warning("The age of whole segments counts: %s", error)
        except (OSError, KafkaError, LookupError) as error:
            _warn(tp, error)
            return None
        complete = self._ask_leader(tp, time_ms)
        return self._ask_leader(tp, EARLIEST_TIME) if complete is None else complete

    def _message_since(self, leader: Broker, tp: TopicPartition, time_ms: int) -> int | None:
        """None where messages without a time might be that late."""
        ask = partial(self._cluster.call, leader, api_versions=True)
        found = log_offsets.since(ask, {tp: time_ms}).checked()[tp]
        if found != NO_OFFSET:
            return found
        start, end = self._ask_leader(tp, EARLIEST_TIME), self._ask_leader(tp, LATEST_TIME)
        if start is None or end is None or start == end:
            return end
        reader = PartitionReader(ask, tp, Position(end - 1))
        times = [message.timestamp for message in iter_messages(reader.read())]
        return end if times and times[-1] != NO_TIMESTAMP else None

    def _log_offsets(
        self, partitions: Iterable[TopicPartition], time: int
    ) -> dict[TopicPartition, int]:
        """Partitions are left out that have no such offset, or no leader that answers."""

        def ask(leader: Broker, times: Mapping[TopicPartition, int]) -> Answers:
            return log_offsets.before(partial(self._cluster.call, leader), times)

        answers = ask_leaders(by_leader(dict.fromkeys(partitions, time), self._leader), ask)
        for tp, error in answers.errors.items():
            _warn(tp, error)
        return answers.values

    def _leader(self, tp: TopicPartition) -> Broker | None:
        try:
            return self._cluster.leader(tp)
        except KafkaError as error:
            _warn(tp, error)
            return None

    def _ask_leader(self, tp: TopicPartition, time: int) -> int | None:
        return self._log_offsets([tp], time).get(tp)

    # --- requests

    def coordinator(self, group: str) -> Broker:
        """Waits while the offsets topic is being created."""
        return self._until_answered(lambda: self._cluster.coordinator(group))

    def any_broker(self, request: object) -> Response:
        """The answer of the first broker that gives one. Raises the last error."""
        failure: Exception | None = None
        for entry in self._cluster.refresh().brokers:
            try:
                return self._cluster.call(Broker(*entry[:3]), request)
            except (OSError, KafkaError) as error:
                failure = error
        raise failure or NoBrokerError("no broker is known")

    def _coordinator(self, group: str, request: object) -> Response:
        """The coordinator's answer, once it is one and has loaded the group's offsets."""

        def ask() -> Response:
            response = self._cluster.call(self._cluster.coordinator(group), request)
            for entry in requests.flatten(response.topics).values():
                if entry.error in _NOT_NOW:
                    raise_for_code(entry.error)
            return response

        return self._until_answered(ask)

    def _until_answered(self, ask: Callable[[], T]) -> T:
        patience = self._timeout_ms / 1000
        return Retry(self._runtime, _RETRY_S, patience=patience, passes=_may_pass).run(ask)


def _warn(tp: TopicPartition, error: Exception) -> None:
    logger.warning("Could not get offsets of %s from its leader: %s", tp, error)


def _may_pass(error: Exception) -> bool:
    return isinstance(error, OSError) or getattr(error, "code", None) in _NOT_NOW


def _stored(
    call: Call, group: str, partitions: list[TopicPartition], version: int = 1
) -> dict[TopicPartition, int]:
    if not partitions:
        return {}
    return {
        tp: stored.offset
        for tp, stored in stored_offsets(call, group, partitions, version=version).items()
        if stored.error == NO_ERROR and stored.offset >= 0
    }


def _raise_any(response: schemas.OffsetCommitResponse) -> None:
    for tp, code in requests.commit_results(response).items():
        if code != NO_ERROR:
            raise_for_code(code, f"The offset of {tp} was not stored: {for_code(code)}")


def _note(key: bytes | None, value: bytes | None, live: dict[GroupPartition | str, bool]) -> None:
    """Replay one message of the offsets topic; messages of other versions are ignored."""
    try:
        parsed = decode_key(key or b"")
        stored = bool(value)
        if value and isinstance(parsed, GroupPartition):
            stored = decode_value(value).offset >= 0
    except KafkaError as error:
        logger.debug("Skipped a message of %s: %s", OFFSETS_TOPIC, error)
        return
    live[parsed] = stored
