"""A runtime without time, a cluster without sockets, a ZooKeeper without a server."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from kafka08.common import Broker, TopicPartition
from kafka08.message.sets import encode_set, iter_messages
from kafka08.protocol import schemas
from kafka08.runtime import Empty, Full
from zk.client import SessionState, Stat
from zk.errors import NodeExistsError, NoNodeError, NotEmptyError


class FakeClock:
    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def millis(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.now_ms / 1000


class FakeEvent:
    def __init__(self, runtime: FakeRuntime) -> None:
        self._runtime = runtime
        self._set = False

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        if not self._set:
            assert timeout is not None, "this would wait without a timeout"
            self._runtime.sleep(timeout)
        return self._set


class FakeLock:
    def __enter__(self) -> FakeLock:
        return self

    def __exit__(self, *exc_info: object) -> None: ...

    def acquire(self, blocking: bool = True) -> bool:
        return True

    def release(self) -> None: ...


class FakeQueue:
    def __init__(self, runtime: FakeRuntime, maxsize: int) -> None:
        self._runtime = runtime
        self._maxsize = maxsize
        self.items: deque[Any] = deque()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if self._maxsize and len(self.items) >= self._maxsize:
            assert not block or timeout is not None, "this would block without a timeout"
            if block and timeout:
                self._runtime.sleep(timeout)
            raise Full
        self.items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if not self.items:
            assert not block or timeout is not None, "this would block without a timeout"
            if block and timeout:
                self._runtime.sleep(timeout)
            raise Empty
        return self.items.popleft()

    def empty(self) -> bool:
        return not self.items

    def qsize(self) -> int:
        return len(self.items)


class FakeTask:
    def __init__(self, name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.name = name
        self.function = function
        self.args = args

    def join(self, timeout: float | None = None) -> bool:
        return True


class FakeRuntime:
    """Tasks do not run: ``step`` does one round of each loop whose name holds a word."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.tasks: list[FakeTask] = []
        self.slept: list[float] = []
        self.on_sleep: Callable[[float], None] | None = None

    def spawn(self, name: str, function: Callable[..., Any], *args: Any) -> FakeTask:
        task = FakeTask(name, function, args)
        self.tasks.append(task)
        return task

    def step(self, word: str) -> int:
        """How many rounds were done."""
        rounds = 0
        for task in list(self.tasks):
            loop = getattr(task.function, "__self__", None)
            if word in task.name and not loop.stopping.is_set():  # type: ignore[union-attr]
                loop._work()  # type: ignore[union-attr]
                rounds += 1
        return rounds

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.now_ms += round(seconds * 1000)
        if self.on_sleep:
            self.on_sleep(seconds)

    def event(self) -> FakeEvent:
        return FakeEvent(self)

    def lock(self) -> FakeLock:
        return FakeLock()

    def queue(self, maxsize: int = 0) -> FakeQueue:
        return FakeQueue(self, maxsize)

    def connect(self, host: str, port: int, timeout: float) -> Any:
        raise AssertionError("no sockets here")

    def blocking(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    def close(self) -> None: ...


class FakeCluster:
    """Brokers whose answers come from ``logs``; ``script`` may answer or raise instead.

    ``logs``: partition -> outer entries as (last offset, bytes). ``script(port, request)``
    returns None to leave the answer to the cluster.
    """

    def __init__(self, brokers: Iterable[Broker] = (Broker(0, "b0", 9090),)) -> None:
        self.brokers = {broker.id: broker for broker in brokers}
        self.leaders: dict[TopicPartition, int] = {}
        self.logs: dict[TopicPartition, list[tuple[int, bytes]]] = {}
        self.starts: dict[TopicPartition, int] = {}
        self.topic_errors: dict[str, int] = {}
        self.committed: dict[tuple[str, TopicPartition], int] = {}
        self.requests: list[tuple[int, Any]] = []
        self.script: Callable[[int, Any], Any] | None = None
        self.down: set[int] = set()
        self.opened = 0

    def create(self, topic: str, partitions: int, leader: int = 0) -> None:
        for partition in range(partitions):
            self.leaders[TopicPartition(topic, partition)] = leader
            self.logs[TopicPartition(topic, partition)] = []

    def end(self, tp: TopicPartition) -> int:
        return self.logs[tp][-1][0] + 1 if self.logs[tp] else self.starts.get(tp, 0)

    def append(
        self, topic: str, partition: int, *values: bytes, key: bytes | None = None, codec: int = 0
    ) -> None:
        tp = TopicPartition(topic, partition)
        if codec:
            first = self.end(tp)
            data = encode_set([(key, value) for value in values], codec, first)
            self.logs[tp].append((first + len(values) - 1, data))
            return
        for value in values:
            offset = self.end(tp)
            self.logs[tp].append((offset, encode_set([(key, value)], 0, offset)))

    def values(self, topic: str, partition: int) -> list[bytes | None]:
        data = b"".join(entry for _, entry in self.logs[TopicPartition(topic, partition)])
        return [message.value for message in iter_messages(data)]

    def sent(self, kind: type[Any]) -> list[Any]:
        return [request for _, request in self.requests if isinstance(request, kind)]

    def channel(self, host: str, port: int, **options: Any) -> FakeChannel:
        return FakeChannel(self, port)

    def answer(self, port: int, request: Any) -> Any:
        if port in self.down:
            raise ConnectionRefusedError(f"port {port}")
        self.requests.append((port, request))
        answer = self.script(port, request) if self.script else None
        if answer is not None:
            return answer
        return getattr(self, f"_{type(request).__name__}")(port, request)

    def _node(self, port: int) -> int:
        return next(b.id for b in self.brokers.values() if b.port == port)

    def _MetadataRequest(self, port: int, request: Any) -> Any:
        topics = []
        for topic in request.topics or sorted({tp.topic for tp in self.leaders}):
            partitions = [
                schemas.PartitionMetadata(5 if leader < 0 else 0, tp.partition, leader, [0], [0])
                for tp, leader in sorted(self.leaders.items())
                if tp.topic == topic
            ]
            error = self.topic_errors.get(topic, 0 if partitions else 3)
            topics.append(schemas.TopicMetadata(error, topic, [] if error else partitions))
        brokers = [schemas.BrokerEndpoint(*broker) for broker in self.brokers.values()]
        return schemas.MetadataResponse(brokers, topics)

    def _FetchRequest(self, port: int, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            entries = [self._fetched(port, topic.topic, asked) for asked in topic.partitions]
            topics.append(schemas.FetchTopicResponse(topic.topic, entries))
        return schemas.FetchResponse(topics)

    def _fetched(self, port: int, topic: str, asked: Any) -> Any:
        tp = TopicPartition(topic, asked.partition)
        if self.leaders.get(tp) != self._node(port):
            return schemas.FetchPartitionResponse(asked.partition, 6, -1, b"")
        if not self.starts.get(tp, 0) <= asked.offset <= self.end(tp):
            return schemas.FetchPartitionResponse(asked.partition, 1, -1, b"")
        data = b"".join(entry for last, entry in self.logs[tp] if last >= asked.offset)
        data = data[: asked.max_bytes]
        return schemas.FetchPartitionResponse(asked.partition, 0, self.end(tp), memoryview(data))

    def _OffsetsRequest(self, port: int, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            entries = []
            for asked in topic.partitions:
                tp = TopicPartition(topic.topic, asked.partition)
                offset = self.starts.get(tp, 0) if asked.time == -2 else self.end(tp)
                entries.append(schemas.OffsetsPartitionResponse(asked.partition, 0, [offset]))
            topics.append(schemas.OffsetsTopicResponse(topic.topic, entries))
        return schemas.OffsetsResponse(topics)

    def _ProduceRequest(self, port: int, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            entries = []
            for part in topic.partitions:
                tp = TopicPartition(topic.topic, part.partition)
                error, base = (0, self.end(tp)) if tp in self.logs else (3, -1)
                if self.leaders.get(tp) != self._node(port):
                    error, base = 6, -1
                if not error:
                    for message in iter_messages(part.message_set):
                        self.append(tp.topic, tp.partition, message.value, key=message.key)
                entries.append(schemas.ProducePartitionResponse(part.partition, error, base))
            topics.append(schemas.ProduceTopicResponse(topic.topic, entries))
        return schemas.ProduceResponse(topics) if request.acks else None

    def _ConsumerMetadataRequest(self, port: int, request: Any) -> Any:
        return schemas.ConsumerMetadataResponse(0, *self.brokers[0])

    def _OffsetCommitRequest(self, port: int, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            for part in topic.partitions:
                tp = TopicPartition(topic.topic, part.partition)
                self.committed[request.group, tp] = part.offset
            entries = [schemas.OffsetCommitPartitionResponse(p.partition, 0) for p in topic[1]]
            topics.append(schemas.OffsetCommitTopicResponse(topic.topic, entries))
        return schemas.OffsetCommitResponse(topics)

    def _OffsetFetchRequest(self, port: int, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            entries = []
            for partition in topic.partitions:
                tp = TopicPartition(topic.topic, partition)
                offset = self.committed.get((request.group, tp), -1)
                entries.append(schemas.OffsetFetchPartitionResponse(partition, offset, "", 0))
            topics.append(schemas.OffsetFetchTopicResponse(topic.topic, entries))
        return schemas.OffsetFetchResponse(topics)


class FakeChannel:
    def __init__(self, cluster: FakeCluster, port: int) -> None:
        self._cluster = cluster
        self._port = port
        cluster.opened += 1

    def connect(self) -> None:
        if self._port in self._cluster.down:
            raise ConnectionRefusedError(f"port {self._port}")

    def call(self, request: Any) -> Any:
        return self._cluster.answer(self._port, request)

    def abort(self) -> None: ...

    def close(self) -> None: ...


class FakeEnsemble:
    """The nodes; FakeZkClients are its sessions."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[bytes, int, int]] = {"/": (b"", 0, 0)}
        self.watches: list[tuple[str, str, Any]] = []
        self.sessions = 0

    def put(self, path: str, data: bytes = b"") -> None:
        """Create or change a persistent node, parents included."""
        parent = path.rpartition("/")[0]
        if parent and parent not in self.nodes:
            self.put(parent)
        if path in self.nodes:
            self.nodes[path] = (data, self.nodes[path][1] + 1, self.nodes[path][2])
            self._fire("data", path)
        else:
            self.add(path, data, 0)

    def add(self, path: str, data: bytes, owner: int) -> None:
        self.nodes[path] = (data, 0, owner)
        self._fire("data", path)
        self._fire("children", path.rpartition("/")[0] or "/")

    def remove(self, path: str) -> None:
        del self.nodes[path]
        self._fire("data", path)
        self._fire("children", path)
        self._fire("children", path.rpartition("/")[0] or "/")

    def text(self, path: str) -> str:
        return self.nodes[path][0].decode()

    def below(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return sorted(
            name[len(prefix) :]
            for name in self.nodes
            if name.startswith(prefix) and name != "/" and "/" not in name[len(prefix) :]
        )

    def end_session(self, session: int) -> None:
        for path in [p for p, (_, _, owner) in self.nodes.items() if owner == session]:
            self.remove(path)

    def _fire(self, kind: str, path: str) -> None:
        fired = [w for w in self.watches if w[:2] == (kind, path)]
        self.watches = [w for w in self.watches if w[:2] != (kind, path)]
        for watch in dict.fromkeys(w[2] for w in fired):
            watch(_Watched())


class _Watched:
    type = "CHANGED"


class FakeZkClient:
    """The part of ZkClient that clients use."""

    session_timeout_ms = 6000
    unreachable = False
    patience_s: float | None = None

    def __init__(self, ensemble: FakeEnsemble) -> None:
        self.ensemble = ensemble
        self.closed = False
        self.before: Callable[[str, str], None] | None = None
        self._listeners: list[Any] = []
        self._new_session()

    def _new_session(self) -> None:
        self.ensemble.sessions += 1
        self.session_id = self.ensemble.sessions

    def expire(self) -> None:
        self.ensemble.end_session(self.session_id)
        self._new_session()
        for listener in self._listeners:
            listener(SessionState.EXPIRED)

    def reconnect(self) -> None:
        for state in (SessionState.SUSPENDED, SessionState.CONNECTED):
            for listener in self._listeners:
                listener(state)

    def on_state(self, callback: Any) -> None:
        self._listeners.append(callback)

    def start(self) -> FakeZkClient:
        return self

    def hurry(self, timeout_s: float) -> None:
        self.patience_s = timeout_s

    def close(self) -> bool:
        """Whether the session was ended."""
        if not self.closed and not self.unreachable:
            self.ensemble.end_session(self.session_id)
        self.closed = True
        return not self.unreachable

    def _note(self, call: str, path: str) -> None:
        if self.before:
            self.before(call, path)

    def _stat(self, path: str) -> Stat:
        _, version, owner = self.ensemble.nodes[path]
        return Stat(0, 0, 0, 0, version, 0, 0, owner, 0, 0, 0)

    def get(self, path: str, watch: Any = None) -> tuple[bytes, Stat]:
        self._note("get", path)
        if path not in self.ensemble.nodes:
            raise NoNodeError(path=path)
        self._watch("data", path, watch)
        return self.ensemble.nodes[path][0], self._stat(path)

    def get_if_exists(self, path: str) -> tuple[bytes, Stat] | None:
        try:
            return self.get(path)
        except NoNodeError:
            return None

    def exists(self, path: str, watch: Any = None) -> Stat | None:
        self._watch("data", path, watch)
        return self._stat(path) if path in self.ensemble.nodes else None

    def children(self, path: str, watch: Any = None) -> list[str]:
        self._note("children", path)
        if path not in self.ensemble.nodes:
            raise NoNodeError(path=path)
        self._watch("children", path, watch)
        return self.ensemble.below(path)

    def children_if_exists(self, path: str) -> list[str]:
        return self.ensemble.below(path)

    def _watch(self, kind: str, path: str, watch: Any) -> None:
        if watch is not None:
            self.ensemble.watches.append((kind, path, watch))

    def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, makepath: bool = False
    ) -> str:
        self._note("create", path)
        if path in self.ensemble.nodes:
            raise NodeExistsError(path=path)
        parent = path.rpartition("/")[0]
        if parent and parent not in self.ensemble.nodes:
            assert makepath
            self.ensemble.put(parent)
        self.ensemble.add(path, data, self.session_id if ephemeral else 0)
        return path

    def create_or_set(self, path: str, data: bytes) -> int:
        self._note("set", path)
        self.ensemble.put(path, data)
        return self.ensemble.nodes[path][1]

    def delete(self, path: str, version: int = -1) -> None:
        if path not in self.ensemble.nodes:
            raise NoNodeError(path=path)
        if self.ensemble.below(path):
            raise NotEmptyError(path=path)
        self.ensemble.remove(path)

    def delete_if_exists(self, path: str) -> bool:
        found = path in self.ensemble.nodes
        if found:
            self.delete(path)
        return found

    def delete_recursive(self, path: str) -> None:
        for child in self.ensemble.below(path):
            self.delete_recursive(f"{path}/{child}")
        self.ensemble.nodes.pop(path, None)
