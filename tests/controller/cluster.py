"""Brokers and controllers around one ZooKeeper, so that controllers run one event at a time.

``settle`` runs everything that is due and returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import LATER_FORMATS_TIME, Broker, TopicPartition
from kafka08.config import BrokerConfig
from kafka08.controller import events
from kafka08.controller.controller import Controller
from kafka08.protocol import schemas
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import znodes
from zk.registry import ensure_common_paths


class FakeBroker:
    """Takes requests as a broker would: epochs checked, states kept, metadata cached."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.controller_epoch = 0
        self.states: dict[TopicPartition, schemas.PartitionState] = {}
        self.metadata = MetadataCache()
        self.requests: list[tuple[str, Any]] = []
        self.stop_replica_error = 0

    def __call__(self, client_id: str, request: Any) -> Any:
        self.requests.append((client_id, request))
        stale = request.controller_epoch < self.controller_epoch
        if isinstance(request, schemas.UpdateMetadataRequest):
            if stale:
                return schemas.UpdateMetadataResponse(-1)
            self.controller_epoch = request.controller_epoch
            self.metadata.update(request.partitions, [Broker(*b[:3]) for b in request.live_brokers])
            return schemas.UpdateMetadataResponse(0)
        is_stop = isinstance(request, schemas.StopReplicaRequest)
        response = schemas.StopReplicaResponse if is_stop else schemas.LeaderAndIsrResponse
        if stale:
            return response(11, [])
        self.controller_epoch = request.controller_epoch
        answer = self._stop if is_stop else self._lead_or_follow
        return response(0, [answer(request, state) for state in request.partitions])

    def _lead_or_follow(
        self, request: schemas.LeaderAndIsrRequest, state: schemas.PartitionState
    ) -> schemas.PartitionError:
        partition = TopicPartition(state.topic, state.partition)
        known = self.states.get(partition)
        if known is not None and state.leader_epoch <= known.leader_epoch:
            return schemas.PartitionError(*partition, 13)
        assert self.broker.id in state.replicas
        self.states[partition] = state
        return schemas.PartitionError(*partition, 0)

    def _stop(
        self, request: schemas.StopReplicaRequest, stop: schemas.StopReplicaPartition
    ) -> schemas.PartitionError:
        if request.delete_partitions and not self.stop_replica_error:
            self.states.pop(TopicPartition(*stop), None)
        error = self.stop_replica_error if request.delete_partitions else 0
        return schemas.PartitionError(*stop, error)

    def took(self, kind: type) -> list[Any]:
        return [request for _, request in self.requests if isinstance(request, kind)]

    def leads(self) -> set[TopicPartition]:
        return {tp for tp, state in self.states.items() if state.leader == self.broker.id}


class FakeConnection:
    """Calls whatever runs at the broker's address at that moment."""

    def __init__(self, cluster: Cluster, broker: Broker) -> None:
        self.client_id: str | None = ""
        self.connected = False
        self._cluster = cluster
        self._broker = broker

    def connect(self) -> None:
        self.connected = True

    def call(self, request: Any) -> Any:
        assert self.client_id is not None
        return self._cluster.brokers[self._broker.id](self.client_id, request)

    def close(self) -> None:
        self.connected = False


class Cluster:
    """Brokers and controllers around one ZooKeeper."""

    def __init__(self, **settings: str) -> None:
        self.server = FakeZooKeeper()
        self.admin = Session(self.server)
        ensure_common_paths(self.admin)  # type: ignore[arg-type]
        self.settings = {key.replace("_", "."): value for key, value in settings.items()}
        self.brokers: dict[int, FakeBroker] = {}
        self.sessions: dict[int, Session] = {}
        self.controllers: dict[int, Controller] = {}
        self.runtimes: dict[int, FakeRuntime] = {}
        self.frozen: set[int] = set()
        self.silent = False  # while true, no broker answers questions for log ends
        self.leos: dict[tuple[int, TopicPartition], int] = {}
        self.originals: set[int] | None = None  # of these brokers; None: of all
        # Up to where the logs that a broker leads hold what originals cannot read.
        self.later_formats: dict[tuple[int, TopicPartition], int] = {}

    # Brokers

    def start(self, *broker_ids: int, settle: bool = True) -> None:
        """Start brokers, each with a controller module, as a server does."""
        for broker_id in broker_ids:
            runtime = FakeRuntime()
            runtime.may_sleep = False
            session = Session(self.server)
            broker = Broker(broker_id, f"host{broker_id}", 9092)
            config = BrokerConfig.from_properties(
                {"broker.id": str(broker_id), "zookeeper.connect": "fake", **self.settings}
            )
            controller = Controller(
                config,
                session,  # type: ignore[arg-type]
                runtime,
                broker=broker,
                connect=lambda to: FakeConnection(self, to),
                fetch_log_ends=self._fetch_log_ends,
            )
            self.runtimes[broker_id] = runtime
            self.sessions[broker_id] = session
            self.controllers[broker_id] = controller
            controller.step(events.Startup())
            self.brokers[broker_id] = FakeBroker(broker)
            self.register(broker_id)
        if settle:
            self.settle()

    def register(self, broker_id: int) -> None:
        broker = self.brokers[broker_id].broker
        is_original = self.originals is None or broker_id in self.originals
        formats = None if is_original else 2
        registration = znodes.BrokerRegistration(broker.host, broker.port, -1, "1", formats)
        path = znodes.broker_path(broker_id)
        self.sessions[broker_id].create(path, znodes.encode_broker(registration), ephemeral=True)

    def kill(self, *broker_ids: int, settle: bool = True) -> None:
        """kill -9, and their sessions expire."""
        for broker_id in broker_ids:
            del self.controllers[broker_id], self.brokers[broker_id]
            self.sessions.pop(broker_id).lose_session()
        if settle:
            self.settle()

    def _fetch_log_ends(
        self, broker: Broker, partitions: Sequence[TopicPartition], time: int
    ) -> dict[TopicPartition, int]:
        ends = self.later_formats if time == LATER_FORMATS_TIME else self.leos
        asked = {tp: (broker.id, tp) for tp in partitions}
        return {tp: ends[each] for tp, each in asked.items() if each in ends}

    @property
    def controller(self) -> Controller:
        awake = [c for i, c in self.controllers.items() if i not in self.frozen]
        active = [c for c in awake if c.epoch]
        assert len(active) == 1, f"{len(active)} active controllers"
        return active[0]

    @property
    def context(self) -> Any:
        active = self.controller._active
        assert active is not None
        return active.context

    def settle(self) -> None:
        """Handle every event and deliver every request, except at frozen controllers."""
        for _ in range(1000):
            if not self._turn():
                return
        raise AssertionError("the cluster does not come to rest")

    def _turn(self) -> bool:
        busy = False
        for broker_id, controller in list(self.controllers.items()):
            if broker_id in self.frozen:
                continue
            if not self.silent:
                self.runtimes[broker_id].run("log-ends-of-")
            inbox = controller._queue
            while not inbox.empty():
                controller.step(inbox.get())
                busy = True
            busy = self.deliver(broker_id) or busy
        return busy

    def deliver(self, broker_id: int) -> bool:
        """Have the senders of a controller send what is queued to brokers that run."""
        runtime = self.runtimes[broker_id]
        before = sum(len(broker.requests) for broker in self.brokers.values())
        for task in runtime.tasks:
            if any(f"to-broker-{running}-" in task.name for running in self.brokers):
                task.run()
        return sum(len(broker.requests) for broker in self.brokers.values()) != before

    def forget_requests(self) -> None:
        for broker in self.brokers.values():
            broker.requests.clear()

    # Writes of tools and leaders to ZooKeeper

    def create_topic(self, topic: str, *replicas: Sequence[int], settle: bool = True) -> None:
        data = znodes.encode_topic({p: list(r) for p, r in enumerate(replicas)})
        self.admin.create(znodes.topic_config_path(topic), znodes.encode_topic_config({}))
        self.admin.create(znodes.topic_path(topic), data)
        if settle:
            self.settle()

    def configure(self, topic: str, **config: str) -> None:
        overrides = {key.replace("_", "."): value for key, value in config.items()}
        data = znodes.encode_topic_config(overrides)
        self.admin.set(znodes.topic_config_path(topic), data)

    def delete_topic(self, topic: str, *, settle: bool = True) -> None:
        self.admin.create(znodes.delete_topic_path(topic))
        if settle:
            self.settle()

    def reassign(self, *moves: tuple[TopicPartition, Sequence[int]], settle: bool = True) -> None:
        data = znodes.encode_reassignment(dict(moves))
        self.admin.create(znodes.REASSIGN_PARTITIONS, data)
        if settle:
            self.settle()

    def elect_preferred(self, *partitions: TopicPartition) -> None:
        data = znodes.encode_partitions(partitions)
        self.admin.create(znodes.PREFERRED_REPLICA_ELECTION, data)
        self.settle()

    def announce_isr(self, broker_id: int, *partitions: TopicPartition) -> None:
        """Announce a written isr, as a kafka08 leader does after ``write_isr``."""
        self.sessions[broker_id].create(
            znodes.isr_change_path_prefix(),
            znodes.encode_partitions(partitions),
            ephemeral=True,
            sequence=True,
            makepath=True,
        )
        self.settle()

    def write_isr(self, partition: TopicPartition, *isr: int, settle: bool = True) -> None:
        """Write an isr as its leader does."""
        path = znodes.partition_state_path(*partition)
        state = self.state(partition)._replace(isr=isr)
        version = self.version(partition)
        self.admin.set(path, znodes.encode_partition_state(state), version)
        if settle:
            self.settle()

    def state(self, partition: TopicPartition) -> znodes.PartitionStateNode:
        path = znodes.partition_state_path(*partition)
        return znodes.decode_partition_state(path, self.admin.get(path)[0])

    def version(self, partition: TopicPartition) -> int:
        return self.admin.get(znodes.partition_state_path(*partition))[1].version

    def assignment(self, topic: str) -> dict[int, tuple[int, ...]]:
        path = znodes.topic_path(topic)
        return znodes.decode_topic(path, self.admin.get(path)[0])

    def exists(self, path: str) -> bool:
        return path in self.server.nodes
