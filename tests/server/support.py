"""A broker without sockets, peers or time: what the tests of its parts share.

``Rig`` is broker 1 with real logs, a ZooKeeper in memory and a fake runtime. ``call`` sends a
request through its bytes, as a connection would.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.cluster.partition import Partition
from kafka08.common import Broker, TopicPartition
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.message.sets import encode_set, iter_messages
from kafka08.protocol.registry import api_of
from kafka08.protocol.requests import decode_response, encode_request
from kafka08.protocol.schemas import (
    BrokerEndpoint,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    LeaderAndIsrRequest,
    PartitionStateInfo,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
    UpdateMetadataRequest,
)
from kafka08.protocol.types import Struct
from kafka08.server.access.room import AccessControl
from kafka08.server.cluster_view.room import ClusterView
from kafka08.server.groups.room import ConsumerGroups
from kafka08.server.optional import NoLogins
from kafka08.server.quotas.replication import ReplicationQuota
from kafka08.server.quotas.throttle import MutationQuota
from kafka08.server.replication.room import Replication
from kafka08.server.requests.dispatch import Dispatcher
from kafka08.server.requests.effects import Effects
from kafka08.server.rooms import apis_of, handlers_of
from kafka08.server.storage.room import Storage
from kafka08.server.transactions.room import Transactions
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.topic import LogConfig
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from tests.protocol.values import narrowed
from zk import znodes
from zk.registry import ensure_common_paths, register_broker

ME, PEER, THIRD = 1, 2, 3
LATEST_CONTROLLER = 10
BROKERS = [BrokerEndpoint(number, f"host{number}", 9090 + number) for number in (ME, PEER, THIRD)]


class Fetchers:
    """Records what the role changes ask for."""

    def __init__(self) -> None:
        self.added: list[tuple[TopicPartition, Broker]] = []
        self.removed: list[TopicPartition] = []

    def add_fetcher_for_partition(self, partition: Partition, leader: Broker) -> None:
        self.added.append((partition.topic_partition, leader))

    def remove_fetcher_for_partitions(self, topic_partitions: Iterable[TopicPartition]) -> None:
        self.removed += topic_partitions


class Halted(Exception):
    """The process would be gone."""


def halt(reason: str) -> None:
    raise Halted(reason)


class RecordedEffects(Effects):
    """Remembers what passed."""

    def __init__(self, runtime: FakeRuntime) -> None:
        super().__init__(runtime)
        self.logs_rolled: list[Log] = []
        self.isr_changes: list[Partition] = []

    def rolled(self, log: Log) -> None:
        self.logs_rolled.append(log)
        super().rolled(log)

    def isr_may_change(self, partition: Partition) -> None:
        self.isr_changes.append(partition)
        super().isr_may_change(partition)


def broker_config(directory: Path, **settings: Any) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {
            "broker.id": str(ME),
            "log.dirs": str(directory),
            "zookeeper.connect": "nowhere:1",
            "log.index.size.max.bytes": "1024",
            "offsets.topic.num.partitions": "4",
            **{
                key.replace("_", "."): str(value).lower() if isinstance(value, bool) else str(value)
                for key, value in settings.items()
            },
        }
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class View(ClusterView):
    """The settings of topics and the states of partitions are those of the rig. It has not heard
    of other brokers."""

    rig: Rig
    originals: Any

    def log_config(self, topic: str) -> LogConfig:
        self.rig.asked_configs.append(topic)
        settings = self.rig.topic_settings.get(topic, {})
        return self.rig.logs.default_config.override(settings)

    def leader_and_isr(self, key: TopicPartition) -> tuple[int, tuple[int, ...]] | None:
        self.rig.asked_states += 1
        return self.rig.stored_states.get(key)


class Rig:
    """Broker 1 and all it serves, with ``later`` also the groups of later releases. Topics' own
    settings are in ``topic_settings``."""

    def __init__(self, directory: Path, *, later: bool = False, **settings: Any) -> None:
        self.directory = directory / "data"
        self.config = broker_config(self.directory, api_versions_enable=later, **settings)
        self.runtime = FakeRuntime()
        self.mutations = MutationQuota(self.runtime.clock)
        self.clock = self.runtime.clock
        self.leader_quota = ReplicationQuota(self.clock, seconds=1)
        self.zookeeper = FakeZooKeeper()
        self.zk = Session(self.zookeeper)
        zk: Any = self.zk
        ensure_common_paths(zk)
        zk.create(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(LATEST_CONTROLLER))
        self.topic_settings: dict[str, dict[str, str]] = {}
        self.asked_configs: list[str] = []
        self.leader_changes: list[tuple[TopicPartition, bool]] = []
        # Leader and isr by partition, as ZooKeeper has them, and how often they were asked for.
        self.stored_states: dict[TopicPartition, tuple[int, tuple[int, ...]]] = {}
        self.asked_states = 0
        self.originals: set[int] = set()  # the brokers of 0.8.2.2
        self.fetchers = Fetchers()
        self.controller = SimpleNamespace(controlled_shutdown=lambda broker_id: [])
        self.logs = LogManager(self.config, clock=self.clock, topic_configs={})
        self.logs.load()
        self.effects = RecordedEffects(self.runtime)
        self.cache = MetadataCache(self.runtime.event())
        self._build(self.runtime, zk, self.fetchers, self.controller)
        self.dispatcher = Dispatcher(self.runtime, self.handlers, self.apis)

    def _build(self, runtime: Any, zk: Any, fetchers: Any, controller: Any) -> None:
        """The rooms, on fakes."""
        config, cache, logs = self.config, self.cache, self.logs
        storage = Storage(config, runtime, logs, self.effects, cache, self.leader_quota, halt)
        self.failures, self.replicas, self.view = storage.failures, storage.replicas, storage.view
        view = View(
            config, runtime, zk, cache, logs.logs, lambda later: None, runtime, self.mutations
        )
        view.rig = self
        view.originals = SimpleNamespace(
            are_registered=lambda: bool(self.originals),
            can_store_later=self.originals.isdisjoint,
            cluster_id=lambda: None,
            administrator=lambda: -1,
        )
        self.creator = view.creator
        groups = ConsumerGroups(config, runtime, zk, storage.replicas, view)
        self.groups, self.offsets, self.members = groups.coordinator, groups.offsets, groups.members
        self.transactions = Transactions(config, runtime, zk, storage, view, groups)
        self.replication = Replication(
            config, runtime, zk, storage, view, fetchers, self, controller
        )
        self.roles, self.retries = self.replication.roles, self.replication.retries
        self.checkpoints, self.log_dirs = self.replication.checkpoints, self.replication.log_dirs
        access = AccessControl(config, runtime, zk, NoLogins(), lambda sessions: None)
        self.rooms = storage, view, groups, self.transactions, self.replication, access
        self.handlers = handlers_of(config, self.rooms, view.originals)
        self.apis = apis_of(config)
        self.checkpoint_high_watermarks = self.replication.checkpoint_high_watermarks

    def leadership_changed(self, partition: Partition, leads: bool) -> None:
        self.leader_changes.append((partition.topic_partition, leads))
        self.offsets.leadership_changed(partition, leads)
        self.transactions.coordinator.store.leadership_changed(partition, leads)

    def partitions_deleted(self, deleted: Set[TopicPartition]) -> None:
        self.offsets.partitions_deleted(deleted)

    def close(self) -> None:
        self.logs.close()

    # Requests

    def send(self, frame: bytes) -> bytes | None:
        """A frame without its size word to the reply with it, None where there is none."""
        parts = self.dispatcher.handle(memoryview(bytearray(frame)), "127.0.0.1")
        if parts is None:
            return None
        return b"".join(part.read() if hasattr(part, "read") else bytes(part) for part in parts)

    def call(self, request: Any, *, version: int | None = None, sent_in: int | None = None) -> Any:
        """The response to ``request``, which is sent in the version ``sent_in`` or that of our
        clients; ``version`` replaces the one in its header."""
        frame = bytearray(b"".join(encode_request(request, 77, "tests", sent_in))[4:])
        if version is not None:
            frame[2:4] = version.to_bytes(2, "big", signed=True)
        reply = self.send(bytes(frame))
        if reply is None:
            return None
        assert int.from_bytes(reply[:4], "big") == len(reply) - 4
        layout = api_of(request)[2]
        if sent_in is not None:
            layout = Struct(layout.schema, sent_in)
        correlation_id, response = decode_response(layout, reply[4:])
        assert correlation_id == 77
        return narrowed(response, layout.version)

    # Roles

    def lead(self, topic: str = "t", partition: int = 0, **changes: Any) -> Partition:
        """Have this broker lead a partition; alone unless ``replicas`` says otherwise."""
        return self._role(topic, partition, {"leader": ME, **changes})

    def follow(self, topic: str = "t", partition: int = 0, **changes: Any) -> Partition:
        return self._role(
            topic, partition, {"leader": PEER, "replicas": [ME, PEER], "isr": [ME, PEER], **changes}
        )

    def _role(self, topic: str, partition: int, changes: dict[str, Any]) -> Partition:
        key = TopicPartition(topic, partition)
        known = self.replicas.partitions.get(key)
        epoch = 0 if known is None else known.leader_epoch + 1
        state = partition_state(topic, partition, **{"leader_epoch": epoch, **changes})
        answer = self.call(LeaderAndIsrRequest(9, 1, [state], BROKERS))
        assert answer == (0, [(topic, partition, 0)])
        return self.replicas.partitions[key]

    def know(self, *states: PartitionStateInfo, brokers: Iterable[Any] = tuple(BROKERS)) -> None:
        """Fill the metadata cache."""
        assert self.call(UpdateMetadataRequest(9, 1, list(states), list(brokers))) == (0,)

    def register(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            register_broker(
                self.zk,  # type: ignore[arg-type]
                Broker(broker_id, f"host{broker_id}", 9090 + broker_id),
                clock=self.clock,
                wait=lambda seconds: True,
            )

    # Producing and fetching

    def produce(
        self, *sets: tuple[str, int, bytes], acks: int = 1, timeout_ms: int = 1000
    ) -> dict[tuple[str, int], tuple[int, int]] | None:
        """(error, base offset) by (topic, partition)."""
        topics = [ProduceTopic(t, [ProducePartition(p, memoryview(data))]) for t, p, data in sets]
        answer = self.call(ProduceRequest(acks, timeout_ms, topics))
        return None if answer is None else by_key(answer)

    def append(self, *texts: str, topic: str = "t", partition: int = 0) -> None:
        key = (topic, partition)
        answer = self.produce((*key, message_set(*texts)))
        assert answer is not None and answer[key][0] == 0

    def fetch(
        self,
        *asked: tuple[str, int, int, int],
        replica_id: int = -1,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
    ) -> dict[tuple[str, int], Any]:
        """(error, high watermark, set) by (topic, partition).

        ``asked``: (topic, partition, offset, max bytes).
        """
        topics = [FetchTopic(t, [FetchPartition(p, at, size)]) for t, p, at, size in asked]
        return by_key(self.call(FetchRequest(replica_id, max_wait_ms, min_bytes, topics)))


def partition_state(
    topic: str = "t",
    partition: int = 0,
    *,
    leader: int = ME,
    leader_epoch: int = 0,
    replicas: Iterable[int] = (ME,),
    isr: Iterable[int] | None = None,
    zk_version: int = 0,
    controller_epoch: int = 1,
) -> PartitionStateInfo:
    replicas = list(replicas)
    isr = replicas if isr is None else list(isr)
    return PartitionStateInfo(
        topic, partition, controller_epoch, leader, leader_epoch, isr, zk_version, replicas
    )


def by_key(response: Any) -> dict[tuple[str, int], Any]:
    """The per-partition answers of a response grouped by topic."""
    return {
        (topic.topic, answer.partition): tuple(answer)[1:]
        for topic in response.topics
        for answer in topic.partitions
    }


def message_set(*texts: str, codec: int = 0, base_offset: int = 0) -> bytes:
    return encode_set([(None, text.encode()) for text in texts], codec, base_offset)


def texts(data: Any) -> list[str]:
    return [(message.value or b"").decode() for message in iter_messages(bytes(data))]
