"""A ZooKeeper, brokers and a runtime in memory, so that controllers run one event at a time.

``FakeZookeeper`` is faithful in what the controller relies on: versions, czxids, one-shot
watches, ephemeral nodes that go with their session, transactions. ``Cluster`` ties several
controllers to it; ``settle`` runs everything that is due and returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import Broker, TopicPartition
from kafka08.config import BrokerConfig
from kafka08.controller import events
from kafka08.controller.controller import Controller
from kafka08.protocol import schemas
from kafka08.runtime import Empty
from zk import znodes
from zk.client import CheckOp, CreateOp, DeleteOp, Op, SessionState, SetOp, Stat
from zk.errors import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    SessionExpiredError,
    ZkConnectionError,
)
from zk.registry import ensure_common_paths


class WouldBlock(BaseException):
    """Something waits for what nobody will do."""


class FakeClock:
    def __init__(self) -> None:
        self.now = 1_441_000_000.0

    def millis(self) -> int:
        return int(self.now * 1000)

    def monotonic(self) -> float:
        return self.now


class FakeEvent:
    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set and timeout is None:
            raise WouldBlock
        return self._set


class FakeQueue:
    def __init__(self) -> None:
        self.items: deque[Any] = deque()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        self.items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self.items:
            raise Empty
        return self.items.popleft()

    def empty(self) -> bool:
        return not self.items

    def qsize(self) -> int:
        return len(self.items)


class FakeTask:
    """Runs when joined, or when the test says so."""

    def __init__(self, name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.name = name
        self.ended = False
        self._function = function
        self._args = args

    def run(self) -> None:
        """Go on until the task would wait for its queue."""
        if not self.ended:
            try:
                self._function(*self._args)
            except Empty:
                return
            self.ended = True

    def join(self, timeout: float | None = None) -> bool:
        self.run()
        return self.ended


class FakeRuntime:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.tasks: list[FakeTask] = []
        self.queues: list[FakeQueue] = []

    def spawn(self, name: str, function: Callable[..., Any], *args: Any) -> FakeTask:
        task = FakeTask(name, function, args)
        if name != "controller-reader":
            self.tasks.append(task)
        return task

    def sleep(self, seconds: float) -> None:
        raise WouldBlock

    def event(self) -> FakeEvent:
        return FakeEvent()

    def lock(self) -> Any:
        raise NotImplementedError

    def queue(self, maxsize: int = 0) -> FakeQueue:
        queue = FakeQueue()
        self.queues.append(queue)
        return queue

    def connect(self, host: str, port: int, timeout: float) -> Any:
        raise OSError("no network here")

    def blocking(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    def close(self) -> None:
        pass

    def run(self, name: str) -> None:
        """Run every task whose name contains ``name`` as far as it goes."""
        for task in self.tasks:
            if name in task.name:
                task.run()


class _Node:
    def __init__(self, data: bytes, czxid: int, owner: int) -> None:
        self.data = data
        self.czxid = czxid
        self.version = 0
        self.owner = owner


class FakeZookeeper:
    """The server: a tree, and watches that fire once."""

    def __init__(self) -> None:
        self.nodes: dict[str, _Node] = {}
        self.zxid = 0
        self.sessions = 0
        self.writes: list[Op] = []
        self._data_watches: dict[str, set[Callable[[Any], None]]] = {}
        self._child_watches: dict[str, set[Callable[[Any], None]]] = {}

    def children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return [
            p[len(prefix) :]
            for p in self.nodes
            if p.startswith(prefix) and "/" not in p[len(prefix) :]
        ]

    def stat(self, path: str) -> Stat:
        node = self.nodes[path]
        children = len(self.children(path))
        return Stat(
            node.czxid,
            node.czxid,
            0,
            0,
            node.version,
            0,
            0,
            node.owner,
            len(node.data),
            children,
            0,
        )

    def watch(self, path: str, watch: Callable[[Any], None] | None, *, children: bool) -> None:
        if watch is not None:
            watches = self._child_watches if children else self._data_watches
            watches.setdefault(path, set()).add(watch)

    def check(self, op: Op, nodes: dict[str, _Node]) -> None:
        """Raise what the server would, given the tree as the transaction left it so far."""
        path = op.path
        if isinstance(op, CreateOp):
            parent = path.rpartition("/")[0]
            if parent and parent not in nodes:
                raise NoNodeError(path=path)
            if path in nodes:
                raise NodeExistsError(path=path)
            return
        if path not in nodes:
            raise NoNodeError(path=path)
        if op.version not in (-1, nodes[path].version):
            raise BadVersionError(path=path)
        if isinstance(op, DeleteOp) and any(p.startswith(path + "/") for p in nodes):
            raise NotEmptyError(path=path)

    def apply(self, ops: Sequence[Op], session: int) -> list[Any]:
        """All or nothing, then the watches."""
        tentative = {path: _copy(node) for path, node in self.nodes.items()}
        fired: list[tuple[str, str]] = []
        self.zxid += 1
        for op in ops:
            self.check(op, tentative)
            if isinstance(op, CreateOp):
                owner = session if op.ephemeral else 0
                tentative[op.path] = _Node(op.data, self.zxid, owner)
                fired.append(("CREATED", op.path))
            elif isinstance(op, SetOp):
                tentative[op.path].data = op.data
                tentative[op.path].version += 1
                fired.append(("CHANGED", op.path))
            elif isinstance(op, DeleteOp):
                del tentative[op.path]
                fired.append(("DELETED", op.path))
        self.nodes = tentative
        self.writes.extend(op for op in ops if not isinstance(op, CheckOp))
        results = [
            self.stat(op.path) if isinstance(op, SetOp) and op.path in self.nodes else op.path
            for op in ops
        ]
        for kind, path in fired:
            self._fire(self._data_watches, path, kind)
            if kind != "CHANGED":
                self._fire(self._child_watches, path.rpartition("/")[0], "CHILD")
            if kind == "DELETED":
                self._fire(self._child_watches, path, kind)
        return results

    def _fire(self, watches: dict[str, set[Callable[[Any], None]]], path: str, kind: str) -> None:
        for watch in watches.pop(path, set()):
            watch(SimpleNamespace(type=kind, path=path))

    def end_session(self, session: int) -> None:
        owned = [path for path, node in self.nodes.items() if node.owner == session]
        for path in owned:
            self.apply([DeleteOp(path)], 0)


def _copy(node: _Node) -> _Node:
    copied = _Node(node.data, node.czxid, node.owner)
    copied.version = node.version
    return copied


class FakeZkClient:
    """A session. ``down`` makes calls fail as during an outage."""

    def __init__(self, server: FakeZookeeper) -> None:
        self.server = server
        self.down = False
        self.expired = False
        self.connected = True
        self.before_multi: Callable[[], None] | None = None
        self._listeners: list[Callable[[SessionState], None]] = []
        server.sessions += 1
        self.session_id = server.sessions

    def _ready(self, path: str) -> None:
        if self.down:
            raise ZkConnectionError(path=path)
        if self.expired:
            raise SessionExpiredError(path=path)

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        self._listeners.append(callback)

    def tell(self, state: SessionState) -> None:
        for listener in self._listeners:
            listener(state)

    def lose_session(self) -> None:
        """The server ends the session; the client does not know yet."""
        self.expired = True
        self.server.end_session(self.session_id)

    def renew_session(self) -> None:
        """The client hears of it and gets a new one."""
        self.server.sessions += 1
        self.session_id = self.server.sessions
        self.expired = False
        self.tell(SessionState.EXPIRED)

    def get(self, path: str, watch: Any = None) -> tuple[bytes, Stat]:
        self._ready(path)
        if path not in self.server.nodes:
            raise NoNodeError(path=path)
        self.server.watch(path, watch, children=False)
        return self.server.nodes[path].data, self.server.stat(path)

    def get_if_exists(self, path: str) -> tuple[bytes, Stat] | None:
        try:
            return self.get(path)
        except NoNodeError:
            return None

    def exists(self, path: str, watch: Any = None) -> Stat | None:
        self._ready(path)
        self.server.watch(path, watch, children=False)
        return self.server.stat(path) if path in self.server.nodes else None

    def children(self, path: str, watch: Any = None) -> list[str]:
        self._ready(path)
        if path not in self.server.nodes:
            raise NoNodeError(path=path)
        self.server.watch(path, watch, children=True)
        return self.server.children(path)

    def create(
        self,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = False,
        sequence: bool = False,
        makepath: bool = False,
    ) -> str:
        self._ready(path)
        parent = path.rpartition("/")[0]
        if makepath and parent:
            self.ensure_path(parent)
        self.server.apply([CreateOp(path, data, ephemeral)], self.session_id)
        return path

    def ensure_path(self, path: str) -> None:
        if path and path not in self.server.nodes:
            self.ensure_path(path.rpartition("/")[0])
            self.create(path)

    def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        self._ready(path)
        stat: Stat = self.server.apply([SetOp(path, data, version)], self.session_id)[0]
        return stat

    def conditional_set(
        self, path: str, data: bytes, version: int, same: Any = None
    ) -> tuple[bool, int]:
        try:
            return True, self.set(path, data, version).version
        except (BadVersionError, NoNodeError):
            return False, -1

    def delete(self, path: str, version: int = -1) -> None:
        self._ready(path)
        self.server.apply([DeleteOp(path, version)], self.session_id)

    def delete_if_exists(self, path: str) -> bool:
        try:
            self.delete(path)
        except NoNodeError:
            return False
        return True

    def delete_recursive(self, path: str) -> None:
        for child in self.server.children(path):
            self.delete_recursive(f"{path}/{child}")
        self.delete_if_exists(path)

    def multi(self, ops: Sequence[Op]) -> list[Any]:
        self._ready("")
        if self.before_multi is not None:
            hook, self.before_multi = self.before_multi, None
            hook()
        return self.server.apply(ops, self.session_id)


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
        self.server = FakeZookeeper()
        self.admin = FakeZkClient(self.server)
        ensure_common_paths(self.admin)  # type: ignore[arg-type]
        self.settings = {key.replace("_", "."): value for key, value in settings.items()}
        self.brokers: dict[int, FakeBroker] = {}
        self.sessions: dict[int, FakeZkClient] = {}
        self.controllers: dict[int, Controller] = {}
        self.runtimes: dict[int, FakeRuntime] = {}
        self.frozen: set[int] = set()
        self.silent = False  # while true, no broker answers questions for log ends
        self.leos: dict[tuple[int, TopicPartition], int] = {}

    # Brokers

    def start(self, *broker_ids: int, settle: bool = True) -> None:
        """Start brokers, each with a controller module, as a server does."""
        for broker_id in broker_ids:
            runtime = FakeRuntime()
            session = FakeZkClient(self.server)
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
        registration = znodes.BrokerRegistration(broker.host, broker.port, -1, "1")
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
        self, broker: Broker, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        asked = {tp: (broker.id, tp) for tp in partitions}
        return {tp: self.leos[each] for tp, each in asked.items() if each in self.leos}

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
