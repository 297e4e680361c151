"""Timestamps and headers through our own clients and tools, and what brokers without them do."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from integration import modern
from integration.harness import Broker, Process, Tools, ZooKeeper, properties
from integration.modern import ModernBroker
from integration.wire import wait_until
from kafka08.common import TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.consumer.simple import SimpleConsumer
from kafka08.consumer.standalone import StandaloneConsumer
from kafka08.message.sets import iter_messages
from kafka08.producer.errors import DeliveryTimeoutError
from kafka08.producer.kafka_producer import KafkaProducer

CONSOLE_PRODUCER = "kafka.tools.ConsoleProducer"
CONSOLE_CONSUMER = "kafka.tools.ConsoleConsumer"
LATER = {"api.versions.enable": "true", "offsets.topic.num.partitions": 1}
SENT = [
    (b"k0", b"v0", 1700000000000, (("a", b"1"), ("a", None), ("ü", b""))),
    (None, b"v1", 1700000000007, ()),
    (b"k2", None, 5, (("only", b"\xff\0"),)),
]
Start = Callable[..., Broker]


@pytest.fixture(scope="module")
def start(zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Brokers, each with a cluster of its own."""
    started: list[Broker] = []

    def begin(kind: str = "ours", props: dict[str, object] | None = None) -> Broker:
        name = f"timed-{uuid.uuid4().hex[:8]}"
        chroot = f"{zookeeper.connect}/{name}"
        broker = Broker(kind, tmp_path_factory.mktemp(name), chroot, props=props or {})
        started.append(broker.start())
        return broker

    yield begin
    for broker in started:
        broker.kill()


@pytest.fixture(scope="module")
def broker(start: Start) -> Broker:
    return start(props=LATER)


@pytest.fixture(scope="module")
def our_tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools("ours", tmp_path_factory.mktemp("tools"))


def send(address: str, topic: str, codec: str = "none") -> None:
    settings = {"bootstrap.servers": address, "api.versions.request": "true", "acks": "all"}
    with KafkaProducer({**settings, "compression.type": codec}) as producer:
        futures = [
            producer.send(topic, value, key, 0, timestamp=time, headers=headers)
            for key, value, time, headers in SENT
        ]
    assert [future.result().offset for future in futures] == [0, 1, 2]


def await_end(broker: Broker, topic: str, end: int) -> None:
    with broker.wire() as wire:
        wait_until(f"{end} messages in {topic}", 180, lambda: wire.offset(topic, 0) >= end)


def seen(messages: Any, count: int = len(SENT)) -> list[tuple[Any, ...]]:
    """So many messages, or those that are there in time."""
    found = []
    with suppress(ConsumerTimeoutError):
        for message in islice(messages, count):
            found.append((message.key, message.value, message.timestamp, message.headers))
            assert message.timestamp_type == (-1 if message.timestamp < 0 else 0)
    return found


def config(broker: Broker | None = None, **settings: Any) -> ConsumerConfig:
    given = {"auto_offset_reset": "smallest", "consumer_timeout_ms": 60000, **settings}
    connect = broker.zookeeper if broker else "unused"
    return ConsumerConfig(group_id=uuid.uuid4().hex, zookeeper_connect=connect, **given)


@pytest.mark.scenario("modern-8")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_consumer_of_ours_sees_what_the_producer_sent(broker: Broker, codec: str) -> None:
    topic = f"all-{codec}"
    broker.create_topic(topic)
    send(broker.address, topic, codec)
    with ConsumerConnector(config(broker, api_versions_request=True)) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        assert seen(stream) == SENT
    without = [(key, value, -1, ()) for key, value, _, _ in SENT]
    with ConsumerConnector(config(broker)) as connector:
        [stream] = connector.create_message_streams({topic: 1})[topic]
        assert seen(stream) == without
    with SimpleConsumer("127.0.0.1", broker.port, api_versions=True) as consumer:
        tp = TopicPartition(topic, 0)
        assert seen(iter_messages(consumer.fetch({tp: 0})[tp].message_set)) == SENT


def test_a_kafka_of_later_releases(tmp_path: Path) -> None:
    if modern.missing():
        pytest.skip(modern.missing())
    later = modern.ModernBroker(tmp_path).start()
    try:
        send(later.address, "later")
        endpoints = [("127.0.0.1", later.port)]
        own = config(api_versions_request=True)
        with StandaloneConsumer(endpoints, own) as consumer:
            assert seen(consumer.stream("later", 0)) == SENT
    finally:
        later.kill()


def test_console_tools(broker: Broker, our_tools: Tools) -> None:
    topic = "console"
    broker.create_topic(topic)
    given = ["--property", "parse.key=true", "--property", "parse.headers=true"]
    server = ["--bootstrap-server", broker.address, "--topic", topic]
    lines = "a:1,b:\tk\tv\n\tk2\tv2\n"
    result = our_tools.run(CONSOLE_PRODUCER, *server, *given, stdin=lines)
    assert result.code == 0
    assert "ERROR" not in result.err
    begin = int(time.time() * 1000)
    shown = [
        f"print.{name}=true" for name in ("timestamp", "partition", "offset", "headers", "key")
    ]
    options = [word for each in shown for word in ("--property", each)]
    ending = ["--from-beginning", "--max-messages", "2"]
    read = our_tools.run(CONSOLE_CONSUMER, *server, *options, *ending)
    first, second = read.lines
    kind, _, stamp = first.partition("\t")[0].partition(":")
    assert kind == "CreateTime" and abs(int(stamp) - begin) < 60000
    assert first.split("\t")[1:] == ["Partition:0", "Offset:0", "a:1,b:", "k", "v"]
    assert second.split("\t")[1:] == ["Partition:0", "Offset:1", "NO_HEADERS", "k2", "v2"]
    old = ["--consumer-property", "api.versions.request=false"]
    read = our_tools.run(CONSOLE_CONSUMER, *server, *options, *ending, *old)
    assert read.lines[0].split("\t")[:4] == [
        "NO_TIMESTAMP",
        "Partition:0",
        "Offset:0",
        "NO_HEADERS",
    ]


@pytest.mark.parametrize("kind", ["ours", pytest.param("original", marks=pytest.mark.original)])
def test_brokers_that_close_the_connection(
    start: Start, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    old = start(kind, {"api.versions.enable": "false"} if kind == "ours" else {})
    old.create_topic("old")
    settings = {"api.versions.request": "true", "delivery.timeout.ms": 1500}
    with (
        KafkaProducer({"bootstrap.servers": old.address, **settings}) as producer,
        pytest.raises(DeliveryTimeoutError),
    ):
        producer.send("old", b"v", headers=[("a", b"1")]).result(30)
    assert "set api.versions.request=false for it" in caplog.text
    with KafkaProducer({"bootstrap.servers": old.address}) as producer:
        assert producer.send("old", b"v").result(30).offset == 0
    caplog.clear()
    endpoints = [("127.0.0.1", old.port)]
    asking = config(api_versions_request=True, consumer_timeout_ms=3000)
    with StandaloneConsumer(endpoints, asking) as consumer:
        assert seen(consumer.stream("old", 0)) == []
    assert "set api.versions.request=false for it" in caplog.text
    with StandaloneConsumer(endpoints, config()) as consumer:
        assert seen(consumer.stream("old", 0), 1) == [(None, b"v", -1, ())]


@pytest.mark.parametrize("is_told", [True, False])
def test_mirrors_keep_them(
    is_told: bool,
    start: Start,
    broker: Broker,
    our_tools: Tools,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    """Whether the files say it, or the mirror finds it out."""
    topic = f"mirrored-{is_told}"
    broker.create_topic(topic)
    send(broker.address, topic)
    later, old = start(props=LATER), start(props={"api.versions.enable": "false"})
    mirrors = []
    for name, target, asked in (("later", later, "true"), ("old", old, "false")):
        source = {
            "zookeeper.connect": broker.zookeeper,
            "group.id": f"mirror-{name}-{is_told}",
            "auto.offset.reset": "smallest",
            **({"api.versions.request": "true"} if is_told else {}),
        }
        (tmp_path / f"{name}-source").write_text(properties(source))
        to = {
            "bootstrap.servers": target.address,
            **({"api.versions.request": asked} if is_told else {}),
        }
        (tmp_path / f"{name}-target").write_text(properties(to))
        target.create_topic(topic)
        mirror = our_tools.background(
            "kafka.tools.MirrorMaker",
            *("--consumer.config", str(tmp_path / f"{name}-source")),
            *("--producer.config", str(tmp_path / f"{name}-target"), "--new.producer"),
            *("--whitelist", topic),
        )
        launch(mirror)
        mirrors.append(mirror)
    for target, expected in (
        (later, SENT),
        (old, [(key, value, -1, ()) for key, value, _, _ in SENT]),
    ):
        await_end(target, topic, len(SENT))
        endpoints = [("127.0.0.1", target.port)]
        with StandaloneConsumer(
            endpoints, config(api_versions_request=target is later)
        ) as consumer:
            assert seen(consumer.stream(topic, 0)) == expected
    lost = [mirror.log.count("without timestamps") + mirror.log.count("lose") for mirror in mirrors]
    assert lost == [0, 1]


class Way(NamedTuple):
    """A mirror from the cluster at ``source`` to that of ``target``: its options, and whether
    messages keep times and headers."""

    source: str
    target: str
    options: tuple[str, ...]
    keeps: bool


ORIGINAL, OURS, TODAY = "original", "ours", "today"
WAYS = [
    Way(ORIGINAL, OURS, ("--new.producer",), keeps=False),
    Way(OURS, ORIGINAL, ("--new.producer",), keeps=False),
    Way(OURS, TODAY, ("--new.producer",), keeps=True),
    Way(OURS, TODAY, ("--modern.producer",), keeps=True),
    Way(TODAY, OURS, ("--new.consumer", "--new.producer"), keeps=True),
    Way(TODAY, ORIGINAL, ("--new.consumer", "--new.producer"), keeps=False),
]


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModernBroker]:
    if modern.missing():
        pytest.skip(modern.missing())
    broker = ModernBroker(tmp_path_factory.mktemp("today")).start()
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def original(start: Start) -> Broker:
    return start(ORIGINAL)


@pytest.mark.original
@pytest.mark.parametrize(
    "way", WAYS, ids=lambda way: f"{way.source}-{way.target}-{way.options[-1]}"
)
def test_mirrors_of_other_releases_find_it_out(
    way: Way,
    broker: Broker,
    original: Broker,
    today: ModernBroker,
    our_tools: Tools,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    """No file has ``api.versions.request``. A loss is logged once."""
    clusters = {OURS: broker, ORIGINAL: original, TODAY: today}
    source, target = clusters[way.source], clusters[way.target]
    topic = f"way-{uuid.uuid4().hex[:8]}"
    for cluster in (source, target):
        cluster.create_topic(topic)
    if source is original:
        with KafkaProducer({"bootstrap.servers": source.address}) as producer:
            for key, value, _, _ in SENT:
                producer.send(topic, value, key, 0)
    else:
        send(source.address, topic)
    reading = (
        {"bootstrap.servers": source.address, "group.id": topic, "auto.offset.reset": "earliest"}
        if source is today
        else {"zookeeper.connect": source.zookeeper, "group.id": topic}
        | {"auto.offset.reset": "smallest"}
    )
    (tmp_path / "source").write_text(properties(reading))
    (tmp_path / "target").write_text(properties({"bootstrap.servers": target.address}))
    mirror = our_tools.background(
        "kafka.tools.MirrorMaker",
        *("--consumer.config", str(tmp_path / "source")),
        *("--producer.config", str(tmp_path / "target"), *way.options, "--whitelist", topic),
    )
    launch(mirror)
    expected = SENT if way.keeps else [(key, value, -1, ()) for key, value, _, _ in SENT]
    asking = config(api_versions_request=target is not original)
    with StandaloneConsumer([("127.0.0.1", target.port)], asking) as consumer:
        assert seen(consumer.stream(topic, 0)) == expected
    told = mirror.log.count("without timestamps") + mirror.log.count("lose")
    # A cluster of 0.8.2.2 has none to lose.
    assert told == (source is not original and not way.keeps), mirror.log
