"""Brokers and controllers around one ZooKeeper, so that controllers run one event at a time.

``settle`` runs everything that is due and returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka08.common import LATER_FORMATS_TIME, Broker, TopicPartition
from kafka08.controller import events
from kafka08.controller.controller import Controller
from kafka08.settings.broker import BrokerConfig
from tests.fakes.cluster import Channel, FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk import znodes
from zk.registry import ensure_common_paths


class ControllerCluster(FakeCluster):
    """Brokers and controllers around one ZooKeeper."""

    def __init__(self, **settings: str) -> None:
        super().__init__([])
        self.server = FakeZooKeeper()
        self.admin = Session(self.server)
        ensure_common_paths(self.admin)  # type: ignore[arg-type]
        self.settings = {key.replace("_", "."): value for key, value in settings.items()}
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
            broker = Broker(broker_id, f"host{broker_id}", 9090 + broker_id)
            config = BrokerConfig.from_properties(
                {"broker.id": str(broker_id), "zookeeper.connect": "fake", **self.settings}
            )
            controller = Controller(
                config,
                session,  # type: ignore[arg-type]
                runtime,
                broker=broker,
                connect=self.connection_to,
                fetch_log_ends=self._fetch_log_ends,
            )
            self.runtimes[broker_id] = runtime
            self.sessions[broker_id] = session
            self.controllers[broker_id] = controller
            controller.step(events.Startup())
            self.brokers[broker_id] = broker
            self.register(broker_id)
        if settle:
            self.settle()

    def connection_to(self, broker: Broker) -> Channel:
        return self.channel(broker.host, broker.port)

    def register(self, broker_id: int) -> None:
        broker = self.brokers[broker_id]
        is_original = self.originals is None or broker_id in self.originals
        formats = None if is_original else 2
        registration = znodes.BrokerRegistration(broker.host, broker.port, -1, "1", formats)
        path = znodes.broker_path(broker_id)
        self.sessions[broker_id].create(path, znodes.encode_broker(registration), ephemeral=True)

    def kill(self, *broker_ids: int, settle: bool = True) -> None:
        """kill -9, and their sessions expire."""
        for broker_id in broker_ids:
            port = self.brokers.pop(broker_id).port
            del self.controllers[broker_id]
            self.requests = [each for each in self.requests if each[0] != port]
            for told in (self.controller_epochs, self.states, self.metadata, self.stop_errors):
                told.pop(broker_id, None)  # type: ignore[attr-defined]
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
        return self.controller.context

    def inbox(self, broker_id: int) -> Any:
        """The queue of events of a controller."""
        return self.controllers[broker_id]._queue

    def put(self, event: Any) -> None:
        """Give the active controller an event, and have it handled."""
        self.inbox(self.controller.broker.id).put(event)
        self.settle()

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
            inbox = self.inbox(broker_id)
            while not inbox.empty():
                controller.step(inbox.get())
                busy = True
            busy = self.deliver(broker_id) or busy
        return busy

    def deliver(self, broker_id: int) -> bool:
        """Have the senders of a controller send what is queued to brokers that run."""
        runtime = self.runtimes[broker_id]
        before = len(self.requests)
        for task in runtime.tasks:
            if any(f"to-broker-{running}-" in task.name for running in self.brokers):
                task.run()
        return len(self.requests) != before

    def forget_requests(self) -> None:
        self.requests.clear()
        self.called.clear()

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
