"""Readers of all ages beside transactions: on Kafka 3.9.1, and on this broker."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration import modern
from integration.harness import Broker, Process, Tools, ZooKeeper
from integration.later.transactional import add, ask, batch, begun, end, produce
from integration.modern import ModernBroker
from integration.proxy import Proxy
from integration.test_transactions import WAIT_S, consumer, producer, unique
from integration.wire import Wire, entries, entry, wait_until
from kafka08.protocol import schemas as s

ABORTED = 1000
MARKER_BYTES = 78
READ_COMMITTED = "message.downconversion.isolation.level"


class Counted:
    """A broker behind a proxy, at which clients and the broker itself find it. ``fetches``: the
    client ids of consumers' Fetch requests."""

    def __init__(self, kind: str, directory: Path, connect: str) -> None:
        self.kind = kind
        self.proxy = Proxy()
        self.fetches: list[str] = []
        self.proxy.loses = self._count
        self.chroot = f"{connect}/counted-{kind}"
        port = self.proxy.port
        if kind == "ours":
            props = {"advertised.host.name": "127.0.0.1", "advertised.port": port}
            props |= {"transaction.state.log.replication.factor": 1}
            ours = Broker("ours", directory, self.chroot, props=props)
            self.broker: Any = ours
        else:
            self.broker = ModernBroker(
                directory,
                self.chroot,
                props={"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"},
            )
        self.proxy.target = self.broker.port
        self.broker.start()

    def _count(self, frame: bytes) -> bool:
        (key,) = struct.unpack_from(">h", frame, 4)
        (size,) = struct.unpack_from(">h", frame, 12)
        if key == 1:
            self.fetches.append(frame[14 : 14 + size].decode())
        return False

    def close(self) -> None:
        self.broker.kill()
        self.proxy.close()


@pytest.fixture(scope="module", params=["modern", "ours"])
def counted(
    request: pytest.FixtureRequest, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Counted]:
    if request.param == "modern" and modern.missing():
        pytest.skip(modern.missing())
    made = Counted(request.param, tmp_path_factory.mktemp("counted"), zookeeper.connect)
    yield made
    made.close()


@pytest.fixture
def wire(counted: Counted) -> Iterator[Wire]:
    with Wire(counted.broker.port) as wire:
        yield wire


def make_topic(counted: Counted, **config: str) -> str:
    from confluent_kafka.admin import AdminClient, NewTopic

    topic = unique("topic")
    admin = AdminClient({"bootstrap.servers": counted.broker.address, "log_level": 0})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result(WAIT_S)
    with Wire(counted.broker.port) as wire:
        wait_until(f"a leader of {topic}", WAIT_S, lambda: wire.offset(topic, 0) == 0)
    return topic


def committed_fetch(wire: Wire, topic: str, offset: int) -> tuple[Any, bytes]:
    """The answer for the partition, as a consumer of committed transactions gets it, in bytes
    too."""
    asked = [s.FetchTopic(topic, [s.FetchPartition(0, offset, 10 << 20)])]
    request = s.FetchRequest(-1, 500, 1, asked, isolation_level=1, max_bytes=10 << 20)
    answer = ask(wire, request, 11)
    part = answer.topics[0].partitions[0]
    assert part.error == 0
    return part, bytes(part.message_set)


@pytest.mark.scenario("transactions-33")
@pytest.mark.slow
def test_a_thousand_aborted_transactions_in_an_answer(counted: Counted, wire: Wire) -> None:
    topic, id_ = make_topic(counted), unique("id")
    made, begins = begun(wire, id_), []
    for number in range(ABORTED):
        wait_until("an end", WAIT_S, lambda: add(wire, id_, made, topic) == {topic: 0})
        begins.append(wire.offset(topic, 0))
        values = [b"%d" % number, b"more"]
        assert produce(wire, topic, batch(made, 2 * number, values=values), id_) == 0
        assert end(wire, id_, made, commit=False) == 0
    wait_until("the last end", WAIT_S, lambda: add(wire, id_, made, topic) == {topic: 0})
    assert produce(wire, topic, batch(made, 2 * ABORTED, values=[b"good"]), id_) == 0
    assert end(wire, id_, made, commit=True) == 0
    last = wire.offset(topic, 0)
    wait_until("the marker", WAIT_S, lambda: wire.offset(topic, 0) == 3 * ABORTED + 2)

    began = time.monotonic()
    answer, data = committed_fetch(wire, topic, 0)
    spent = time.monotonic() - began
    aborted = [(each.producer_id, each.first_offset) for each in answer.aborted_transactions]
    print(f"{counted.kind}: {len(data)} bytes, {len(aborted)} aborted in {1000 * spent:.0f} ms")
    assert sorted(aborted) == [(made[0], first) for first in begins]
    assert answer.last_stable_offset == 3 * ABORTED + 2
    answer, _ = committed_fetch(wire, topic, begins[ABORTED // 2] + 1)
    aborted = [(each.producer_id, each.first_offset) for each in answer.aborted_transactions]
    assert sorted(aborted) == [(made[0], first) for first in begins[ABORTED // 2 :]]
    assert last >= begins[-1]
    for start in (0, begins[10], begins[10] + 1, begins[10] + 2):
        assert read_until(counted.broker.address, topic, "good", start=start) == ["good"]
    shown = read_until(counted.broker.address, topic, "good", committed=False)
    assert len(shown) == 2 * ABORTED + 1


def read_until(
    address: str, topic: str, last: str, *, committed: bool = True, start: int = 0
) -> list[str]:
    from confluent_kafka import TopicPartition

    reader = consumer(address, committed=committed)
    reader.assign([TopicPartition(topic, 0, start)])
    found: list[str] = []
    while found[-1:] != [last]:
        message = reader.poll(WAIT_S)
        assert message is not None, found[-3:]
        if not message.error():
            found.append(message.value().decode())
    reader.close()
    return found


class Old:
    """A consumer of 0.8 from the beginning of a topic on: ``name`` is "KIND-console", which is the
    high-level one, or "KIND-shell". ``printed`` are its messages."""

    def __init__(self, name: str, counted: Counted, topic: str, directory: Path) -> None:
        self._counted = counted
        kind, _, program = name.partition("-")
        self.id = unique("old")
        if program == "console":
            config = directory / "consumer.properties"
            config.write_text(f"group.id={self.id}\nclient.id={self.id}\n")
            where = ("--zookeeper", counted.chroot, "--consumer.config", str(config))
            words = ("kafka.tools.ConsoleConsumer", *where, "--from-beginning")
        else:
            where = ("--broker-list", counted.proxy.address, "--clientId", self.id)
            words = ("kafka.tools.SimpleConsumerShell", *where, "--partition", "0", "--offset=-2")
        self.process: Process = Tools(kind, directory).background(*words, "--topic", topic)

    @property
    def printed(self) -> list[str]:
        return [line for line in self.process.log.splitlines() if line.startswith("value ")]

    def await_values(self, *values: str) -> None:
        wanted = [f"value {value}" for value in values]
        wait_until(f"{wanted} in {self.process.log}", WAIT_S, lambda: self.printed == wanted)

    def fetches_per_wait(self) -> float:
        """Fetch requests in some time, relative to those of one that waits as long as it may."""
        before, began = self._asked(), time.monotonic()
        time.sleep(3)
        return (self._asked() - before) / ((time.monotonic() - began) / MAX_WAIT_S)

    def _asked(self) -> int:
        return sum(self.id in each for each in self._counted.fetches)


MAX_WAIT_S = 0.1  # of a high-level consumer; others wait longer
OLD = ["original-console", "original-shell", "ours-console", "ours-shell"]


def transaction(wire: Wire, topic: str, value: str, *, commit: bool | None) -> Callable[[], None]:
    """``commit``: None leaves it open. Returns what commits it."""
    id_ = unique("id")
    made = begun(wire, id_)
    assert add(wire, id_, made, topic) == {topic: 0}
    before = wire.offset(topic, 0)
    assert produce(wire, topic, batch(made, 0, values=[value.encode()]), id_) == 0

    def finish(commit: bool = True) -> None:
        assert end(wire, id_, made, commit=commit) == 0
        wait_until("the marker", WAIT_S, lambda: wire.offset(topic, 0) >= before + 2)

    if commit is not None:
        finish(commit)
    return finish


@pytest.fixture
def ours(counted: Counted) -> Counted:
    if counted.kind != "ours":
        pytest.skip("consumers of 0.8 stop or spin at its markers")
    return counted


@pytest.mark.scenario("transactions-52")
def test_an_answer_to_0_8_at_a_marker(counted: Counted, wire: Wire) -> None:
    """Kafka sends part of a message, at once. Consumers of 0.8 take that for a message larger than
    they may fetch, and end, or ask again without a pause."""
    topic = make_topic(counted)
    transaction(wire, topic, "x", commit=True)
    began = time.monotonic()
    _, data = wire.fetch(topic, 0, 1, wait_ms=1000)
    assert list(entries(data)) == []
    if counted.kind == "ours":
        assert data == b"" and time.monotonic() - began >= 1
    else:
        assert len(data) > 0


@pytest.mark.scenario("transactions-52")
@pytest.mark.parametrize("version", [4, 7, 11])
@pytest.mark.parametrize("isolation", [0, 1])
def test_an_answer_of_a_marker_alone(
    counted: Counted, wire: Wire, version: int, isolation: int
) -> None:
    """Later consumers get it: their position moves to the end of the log."""
    topic = make_topic(counted)
    transaction(wire, topic, "x", commit=True)
    asked = [s.FetchTopic(topic, [s.FetchPartition(0, 1, 1000)])]
    request = s.FetchRequest(-1, 60_000, 1, asked, isolation_level=isolation)
    data = ask(wire, request, version).topics[0].partitions[0].message_set
    assert len(data) == MARKER_BYTES
    request = s.FetchRequest(-1, 1000, MARKER_BYTES + 1, asked, isolation_level=isolation)
    began = time.monotonic()
    data = ask(wire, request, version).topics[0].partitions[0].message_set
    assert len(data) == MARKER_BYTES and time.monotonic() - began >= 1


@pytest.mark.scenario("transactions-52")
@pytest.mark.original
@pytest.mark.parametrize("reader", OLD)
def test_a_consumer_of_0_8_waits_at_a_marker(
    ours: Counted, wire: Wire, reader: str, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    topic = make_topic(ours)
    transaction(wire, topic, "value 1", commit=True)
    old = Old(reader, ours, topic, tmp_path)
    launch(old.process)
    old.await_values("1")
    assert old.fetches_per_wait() < 2
    wire.produce(topic, 0, entry(None, b"value 2"))
    old.await_values("1", "2")
    transaction(wire, topic, "value 3", commit=False)
    old.await_values("1", "2", "3")
    assert old.fetches_per_wait() < 2
    transaction(wire, topic, "value 4", commit=True)
    old.await_values("1", "2", "3", "4")
    assert old.process.alive


@pytest.mark.scenario("transactions-52")
@pytest.mark.original
@pytest.mark.parametrize("reader", OLD)
def test_a_consumer_of_0_8_waits_at_an_open_transaction(
    ours: Counted, wire: Wire, reader: str, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """In a topic that shows it committed messages alone."""
    topic = make_topic(ours, **{READ_COMMITTED: "read_committed"})
    transaction(wire, topic, "value 1", commit=True)
    transaction(wire, topic, "value 2", commit=False)
    old = Old(reader, ours, topic, tmp_path)
    launch(old.process)
    old.await_values("1")
    assert old.fetches_per_wait() < 2
    commit = transaction(wire, topic, "value 3", commit=None)
    wire.produce(topic, 0, entry(None, b"value 4"))
    assert old.fetches_per_wait() < 2
    old.await_values("1")
    commit()
    old.await_values("1", "3", "4")
    assert old.process.alive


class Readers:
    """Each reads a topic from its beginning to the message "last" while others write. ``old``:
    those before 0.11 are among them, which Kafka 3.9.1 makes end at a marker."""

    def __init__(self, address: str, port: int, topic: str, *, old: bool) -> None:
        self.found: dict[str, list[tuple[int, str]]] = {}
        self._address, self._port, self._topic = address, port, topic
        reads: dict[str, Callable[[], Iterator[tuple[int, str]]]] = {
            "wire 0.8": self._wire,
            "kafka-python 0.11": lambda: self._kafka_python((0, 11, 0)),
            "librdkafka uncommitted": lambda: self._librdkafka(committed=False),
            "librdkafka committed": lambda: self._librdkafka(committed=True),
        }
        if old:
            reads["kafka-python 0.8"] = lambda: self._kafka_python((0, 8, 2))
            reads["kafka-python 0.10"] = lambda: self._kafka_python((0, 10))
        self._threads = [
            threading.Thread(target=self._read, args=item, daemon=True) for item in reads.items()
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, name: str, read: Callable[[], Iterator[tuple[int, str]]]) -> None:
        found: list[tuple[int, str]] = []
        for each in read():
            found.append(each)
            if each[1] == "last":
                self.found[name] = found
                return

    def join(self) -> dict[str, list[tuple[int, str]]]:
        for thread in self._threads:
            thread.join(2 * WAIT_S)
        assert not any(thread.is_alive() for thread in self._threads), self.found.keys()
        return self.found

    def _wire(self) -> Iterator[tuple[int, str]]:
        offset = 0
        with Wire(self._port) as wire:
            while True:
                _, data = wire.fetch(self._topic, 0, offset)
                for each in entries(data):
                    if each.offset >= offset:
                        offset = each.offset + 1
                        yield each.offset, (each.value or b"").decode()

    def _kafka_python(self, version: tuple[int, ...]) -> Iterator[tuple[int, str]]:
        from kafka import KafkaConsumer, TopicPartition

        reader = KafkaConsumer(bootstrap_servers=self._address, api_version=version, group_id=None)
        partition = TopicPartition(self._topic, 0)
        reader.assign([partition])
        reader.seek(partition, 0)
        for message in reader:
            yield message.offset, message.value.decode()

    def _librdkafka(self, *, committed: bool) -> Iterator[tuple[int, str]]:
        from confluent_kafka import TopicPartition

        reader = consumer(self._address, committed=committed)
        reader.assign([TopicPartition(self._topic, 0, 0)])
        while True:
            message = reader.poll(WAIT_S)
            if message is not None and not message.error():
                yield message.offset(), message.value().decode()


WRITTEN = 120
COMMITTED_ALONE = ("librdkafka committed",)


def test_writers_and_readers_of_all_ages(counted: Counted) -> None:
    """Everybody sees in one order what is theirs to see."""
    from confluent_kafka import Producer

    address, port = counted.broker.address, counted.broker.port
    topic = make_topic(counted)
    readers = Readers(address, port, topic, old=counted.kind == "ours")

    def old() -> None:
        with Wire(port) as wire:
            for number in range(WRITTEN):
                wire.produce(topic, 0, entry(b"k", b"old %d" % number))

    def idempotent() -> None:
        made = Producer({"bootstrap.servers": address, "enable.idempotence": True, "log_level": 0})
        for number in range(WRITTEN):
            made.produce(topic, f"idempotent {number}", partition=0)
            made.poll(0.005)
        assert made.flush(WAIT_S) == 0

    def transactional() -> None:
        made = producer(address, unique("id"))
        for number in range(WRITTEN // 4):
            made.begin_transaction()
            name = "committed" if number % 3 else "aborted"
            for part in range(2):
                made.produce(topic, f"{name} {2 * number + part}", partition=0)
            if number % 3:
                made.commit_transaction(WAIT_S)
            else:
                made.flush(WAIT_S)
                made.abort_transaction(WAIT_S)

    writers = [threading.Thread(target=each) for each in (old, idempotent, transactional)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with Wire(port) as wire:
        wire.produce(topic, 0, entry(None, b"last"))
    found = readers.join()

    everything = found["librdkafka uncommitted"]
    for kind, count in (("old", WRITTEN), ("idempotent", WRITTEN)):
        values = [value for _, value in everything if value.startswith(kind)]
        assert values == [f"{kind} {number}" for number in range(count)]
    for kind, remainders in (("committed", (1, 2)), ("aborted", (0,))):
        values = [value for _, value in everything if value.startswith(kind)]
        numbers = [n for n in range(WRITTEN // 2) if n // 2 % 3 in remainders]
        assert values == [f"{kind} {number}" for number in numbers]
    visible = [each for each in everything if not each[1].startswith("aborted")]
    for name, shown in found.items():
        assert shown == (visible if name in COMMITTED_ALONE else everything), name
    assert len(everything) == 2 * WRITTEN + WRITTEN // 2 + 1
