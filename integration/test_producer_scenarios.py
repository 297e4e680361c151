"""Both producers among real brokers of both kinds, and the mirror, scenario by scenario."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker, Tools, ZooKeeper, properties
from integration.proxy import Proxy
from integration.wire import Entry, entry, wait_until
from kafka08.errors import NotLeaderForPartitionError
from kafka08.message.compression import GZIP, NONE
from kafka08.message.scan import iter_entries
from kafka08.producer.config import ProducerConfig
from kafka08.producer.errors import (
    BufferExhaustedError,
    DeliveryTimeoutError,
    FailedToSendMessageError,
    QueueFullError,
)
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.partitioners import (
    byte_array_partitioner,
    default_partitioner,
    murmur2_partitioner,
)
from kafka08.producer.producer import Producer
from kafka08.protocol import schemas

WAIT_S = 40
KEYS = ["key", "user-42", "foobar", "21", "", "größe", "polygenelubricants", *map(str, range(40))]


def topic_on(broker: Broker, partitions: int = 1, **config: object) -> str:
    topic = f"scenario-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, partitions, {k.replace("_", "."): v for k, v in config.items()})
    return topic


def old_producer(broker: Broker, **settings: Any) -> Producer:
    """The Scala producer's twin; waits for acknowledgements unless told otherwise."""
    values = {"request_required_acks": 1, "message_send_max_retries": 3, **settings}
    return Producer(ProducerConfig(metadata_broker_list=(broker.address,), **values))


def stored(broker: Broker, topic: str, partition: int = 0) -> list[Entry]:
    with broker.wire() as wire:
        return wire.read_all(topic, partition)


def outer(broker: Broker, topic: str) -> list[tuple[int, int]]:
    """(codec, last offset) of each outer entry of partition 0."""
    with broker.wire() as wire:
        data = wire.fetch(topic, 0, 0)[1]
    return [(found.codec, found.offset) for found in iter_entries(data)]


def ends(broker: Broker, topic: str, partitions: int) -> list[int]:
    with broker.wire() as wire:
        return [wire.offset(topic, number) for number in range(partitions)]


def partition_of_keys(broker: Broker, topic: str, partitions: int) -> dict[str, int]:
    return {
        (found.key or b"").decode(): number
        for number in range(partitions)
        for found in stored(broker, topic, number)
    }


# --- partitions


@pytest.mark.scenario("client-28")
def test_28_unkeyed_messages_stay_together(broker: Broker) -> None:
    topic = topic_on(broker, 6)
    with old_producer(broker) as producer:
        for number in range(30):
            producer.send(KeyedMessage(topic, b"%d" % number))
    assert sorted(ends(broker, topic, 6)) == [0, 0, 0, 0, 0, 30]
    with old_producer(broker, topic_metadata_refresh_interval_ms=0) as producer:
        for number in range(60):
            producer.send(KeyedMessage(topic, b"%d" % number))
            time.sleep(0.002)  # a refresh is due only when the clock has moved
    assert sum(end > 0 for end in ends(broker, topic, 6)) > 2


@pytest.mark.scenario("client-29")
def test_29_bytes_and_text_as_keys(broker: Broker) -> None:
    topic = topic_on(broker, 12)
    settings = {
        "key_serializer_class": "kafka.serializer.StringEncoder",
        "partitioner_class": "kafka.producer.DefaultPartitioner",
    }
    with old_producer(broker, **settings) as producer:
        producer.send(*[KeyedMessage(topic, b"v", key) for key in KEYS])
    expected = {key: default_partitioner(key, 12) for key in KEYS}
    # Its hash is the one that has no absolute value.
    assert (expected["polygenelubricants"], expected["key"]) == (0, 11)
    assert partition_of_keys(broker, topic, 12) == expected


@pytest.mark.scenario("client-29", "client-30")
@pytest.mark.original
@pytest.mark.parametrize(
    ("option", "partitioner"),
    [([], byte_array_partitioner), (["--new-producer"], murmur2_partitioner)],
    ids=["29-scala", "30-java"],
)
def test_keys_go_where_the_originals_put_them(
    broker: Broker, tmp_path: Path, option: list[str], partitioner: Any
) -> None:
    theirs, ours = topic_on(broker, 12), topic_on(broker, 12)
    args = ["--broker-list", broker.address, "--topic", theirs, "--sync", *option]
    lines = "".join(f"{key}\tv\n" for key in KEYS)
    done = Tools("original", tmp_path).run(
        "kafka.tools.ConsoleProducer", *args, "--property", "parse.key=true", stdin=lines
    )
    assert done.code == 0, done.err
    if option:
        with KafkaProducer(bootstrap_servers=broker.address) as producer:
            for key in KEYS:
                producer.send(ours, b"v", key.encode())
    else:
        by_name = {"partitioner_class": "kafka.producer.ByteArrayPartitioner"}
        with old_producer(broker, **by_name) as scala:
            scala.send(*[KeyedMessage(ours, b"v", key.encode()) for key in KEYS])
    found = partition_of_keys(broker, ours, 12)
    assert found == {key: partitioner(key.encode(), 12) for key in KEYS}

    def arrived() -> bool:
        return sum(ends(broker, theirs, 12)) == len(KEYS)

    wait_until("their messages", WAIT_S, arrived)
    assert partition_of_keys(broker, theirs, 12) == found


@pytest.mark.scenario("client-30")
def test_30_the_new_producer(broker: Broker) -> None:
    topic = topic_on(broker, 12)
    with KafkaProducer(bootstrap_servers=broker.address) as producer:
        keyed = [producer.send(topic, b"v", key) for key in (b"foobar", b"21")]
        unkeyed = [producer.send(topic, b"v") for _ in range(24)]
        explicit = [producer.send(topic, b"v", b"foobar", partition=p) for p in (0, 11)]
        with pytest.raises(ValueError, match="Invalid partition"):
            producer.send(topic, b"v", partition=12)
    assert [future.result(0).partition for future in keyed] == [6, 0]
    taken = [future.result(0).partition for future in unkeyed]
    assert taken == [(taken[0] + step) % 12 for step in range(24)]
    assert [future.result(0).partition for future in explicit] == [0, 11]


@pytest.fixture(scope="module")
def half_led(
    kind: str, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """The one of two brokers that is left, for topics whose partition 1 was the other's."""
    directory = tmp_path_factory.mktemp(f"pair-{kind}")
    chroot = f"{zookeeper.connect}/pair-{kind}"
    pair = [Broker(kind, directory / str(n), chroot, broker_id=n) for n in range(2)]
    for broker in pair:
        broker.start()
    zk = zookeeper.client(chroot.removeprefix(zookeeper.connect))
    payload = json.dumps({"version": 1, "partitions": {"0": [0], "1": [1]}}).encode()
    for topic in ("old", "new"):
        zk.create(f"/brokers/topics/{topic}", payload, makepath=True)
    zk.stop()
    zk.close()

    def led_by(leader: int) -> bool:
        with pair[0].wire() as wire:
            return all(wire.leader(topic, 1) == leader for topic in ("old", "new"))

    wait_until("both leaders", WAIT_S, lambda: led_by(1))
    pair[0].wait_for_leader("old")
    pair[0].wait_for_leader("new")
    pair[1].kill()
    wait_until("no leader", WAIT_S, lambda: led_by(-1))
    yield pair[0]
    pair[0].kill()


@pytest.mark.scenario("client-31")
def test_31_one_partition_without_a_leader(half_led: Broker) -> None:
    config = ProducerConfig(
        metadata_broker_list=(half_led.address,),
        request_required_acks=1,
        retry_backoff_ms=50,
        message_send_max_retries=2,
    )
    with Producer(config, partitioner=lambda key, count: int(key)) as producer:
        begin = time.monotonic()
        with pytest.raises(FailedToSendMessageError, match=r"\[old,1\].*leader"):
            producer.send(*[KeyedMessage("old", b"v%d" % n, b"%d" % (n % 2)) for n in range(6)])
        assert time.monotonic() - begin >= 0.15
        producer.send(KeyedMessage("old", b"unkeyed"))  # goes where somebody leads
    assert [e.value for e in stored(half_led, "old")] == [b"v0", b"v2", b"v4", b"unkeyed"]


@pytest.mark.scenario("client-31")
def test_31_one_partition_without_a_leader_new(half_led: Broker) -> None:
    settings = {"delivery_timeout_ms": 700, "retries": 100}
    with KafkaProducer(bootstrap_servers=half_led.address, **settings) as producer:
        futures = [producer.send("new", b"v", partition=n % 2) for n in range(4)]
        assert [futures[n].result(WAIT_S).offset for n in (0, 2)] == [0, 1]
        for n in (1, 3):
            with pytest.raises(DeliveryTimeoutError, match="leader"):
                futures[n].result(WAIT_S)


@pytest.mark.scenario("client-32")
@pytest.mark.parametrize("answer", [-1, 12, "raises"])
def test_32_a_partitioner_that_is_wrong(broker: Broker, answer: Any) -> None:
    topic = topic_on(broker, 12)

    def partitioner(key: Any, count: int) -> int:
        if answer == "raises":
            raise ArithmeticError("no idea")
        return int(answer)

    config = ProducerConfig(metadata_broker_list=(broker.address,), retry_backoff_ms=1)
    with Producer(config, partitioner=partitioner) as producer:
        good, bad = KeyedMessage(topic, b"unkeyed"), KeyedMessage(topic, b"v", b"k")
        with pytest.raises(FailedToSendMessageError, match="after 3 tries"):
            producer.send(good, bad)
    assert ends(broker, topic, 12) == [0] * 12


# --- queues and batches


def hopeless(**settings: Any) -> Producer:
    """Async, and nobody listens: each message keeps the sending task busy for 0.6 s."""
    values = {"producer_type": "async", "retry_backoff_ms": 300, "message_send_max_retries": 1}
    values |= {"queue_buffering_max_messages": 1, "batch_num_messages": 1, **settings}
    return Producer(ProducerConfig(metadata_broker_list=("127.0.0.1:1",), **values))


@pytest.mark.scenario("client-33")
@pytest.mark.parametrize("timeout_ms", [0, 200])
def test_33_a_full_queue(timeout_ms: int) -> None:
    with hopeless(queue_enqueue_timeout_ms=timeout_ms) as producer:
        producer.send(KeyedMessage("t", b"being sent"))
        wait_until("the sending task", WAIT_S, producer._queue.empty)  # type: ignore[union-attr]
        producer.send(KeyedMessage("t", b"queued"))
        begin = time.monotonic()
        with pytest.raises(QueueFullError, match="full of unsent messages"):
            producer.send(KeyedMessage("t", b"too much"))
        assert timeout_ms / 1000 - 0.01 < time.monotonic() - begin < 0.5
        assert producer.metrics()["DroppedMessagesPerSec.Count"] == 1


@pytest.mark.scenario("client-33")
def test_33_a_full_queue_blocks() -> None:
    with hopeless(queue_enqueue_timeout_ms=-1) as producer:
        begin = time.monotonic()
        producer.send(*[KeyedMessage("t", b"%d" % number) for number in range(3)])
        assert time.monotonic() - begin > 0.4


@pytest.mark.scenario("client-34")
def test_34_ten_messages_make_two_batches(broker: Broker) -> None:
    topic = topic_on(broker)
    settings = {"producer_type": "async", "batch_num_messages": 5, "compression_codec": GZIP}
    with old_producer(broker, **settings) as producer:
        producer.send(*[KeyedMessage(topic, b"%d" % number) for number in range(10)])
    assert outer(broker, topic) == [(GZIP, 4), (GZIP, 9)]


@pytest.mark.scenario("client-34")
def test_34_two_messages_leave_after_200_ms(broker: Broker) -> None:
    topic = topic_on(broker)
    settings = {"producer_type": "async", "queue_buffering_max_ms": 200, "compression_codec": GZIP}
    with old_producer(broker, **settings) as producer:
        begin = time.monotonic()
        producer.send(*[KeyedMessage(topic, b"%d" % number) for number in range(2)])
        wait_until("the batch", WAIT_S, lambda: ends(broker, topic, 1) == [2])
        assert time.monotonic() - begin > 0.15
        assert outer(broker, topic) == [(GZIP, 1)]


@pytest.mark.scenario("client-35")
def test_35_only_some_topics_are_compressed(broker: Broker) -> None:
    packed, plain = topic_on(broker), topic_on(broker)
    settings = {"compression_codec": GZIP, "compressed_topics": (packed,)}
    with old_producer(broker, **settings) as producer:
        producer.send(*[KeyedMessage(topic, b"v") for topic in (packed, plain) for _ in range(3)])
    settings = {"compression_type": "gzip", "compressed_topics": packed, "linger_ms": 100}
    with KafkaProducer(bootstrap_servers=broker.address, **settings) as new:
        for topic in (packed, plain):
            for _ in range(2):
                new.send(topic, b"v")
    assert outer(broker, packed) == [(GZIP, 2), (GZIP, 4)]
    assert outer(broker, plain) == [(NONE, offset) for offset in range(5)]


# --- failures


@pytest.mark.scenario("client-36")
def test_36_too_large_without_acks(broker: Broker) -> None:
    topic = topic_on(broker)
    with old_producer(broker, request_required_acks=0) as producer:
        producer.send(KeyedMessage(topic, b"x" * 2_000_000))
        sent = 0

        def arrives() -> bool:
            nonlocal sent
            producer.send(KeyedMessage(topic, b"%d" % sent))
            sent += 1
            return bool(stored(broker, topic))

        wait_until("a later message", WAIT_S, arrives)
    wait_until(
        "the last one", WAIT_S, lambda: stored(broker, topic)[-1].value == b"%d" % (sent - 1)
    )
    assert all(len(found.value or b"") < 10 for found in stored(broker, topic))


@pytest.fixture(scope="module")
def behind_proxy(
    kind: str, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Broker, Proxy]]:
    proxy = Proxy()
    chroot = f"{zookeeper.connect}/producers-{kind}"
    props = {"advertised.port": proxy.port}
    broker = Broker(kind, tmp_path_factory.mktemp(f"producers-{kind}"), chroot, props=props)
    proxy.target = broker.port
    broker.start()
    yield broker, proxy
    broker.kill()
    proxy.close()


@pytest.fixture
def proxied(behind_proxy: tuple[Broker, Proxy]) -> Iterator[tuple[Broker, Proxy]]:
    yield behind_proxy
    behind_proxy[1].intercept = None


@pytest.mark.scenario("client-37")
@pytest.mark.parametrize("blocks", [True, False])
def test_37_a_full_buffer(proxied: tuple[Broker, Proxy], blocks: bool) -> None:
    broker, proxy = proxied
    topic = topic_on(broker)
    held = threading.Event()

    def hold(request: Any) -> None:
        if isinstance(request, schemas.ProduceRequest):
            held.wait(WAIT_S)

    settings = {"buffer_memory": 5000, "batch_size": 1000, "block_on_buffer_full": blocks}
    with KafkaProducer(bootstrap_servers=broker.address, **settings) as producer:
        producer.send(topic, b"first").result(WAIT_S)
        proxy.intercept = hold
        futures = [producer.send(topic, b"x" * 900) for _ in range(5)]
        try:
            if blocks:
                threading.Timer(0.4, held.set).start()
                begin = time.monotonic()
                futures.append(producer.send(topic, b"x" * 900))
                assert time.monotonic() - begin > 0.3
            else:
                with pytest.raises(BufferExhaustedError, match="raise buffer"):
                    producer.send(topic, b"x" * 900)
        finally:
            held.set()
        producer.flush(WAIT_S)
        assert [f.result(0).offset for f in futures] == list(range(1, 1 + len(futures)))


@pytest.mark.scenario("client-38")
def test_38_a_retry_delivers_once(proxied: tuple[Broker, Proxy]) -> None:
    broker, proxy = proxied
    topic = topic_on(broker)
    refused = []

    def refuse_once(request: Any) -> Any:
        if not isinstance(request, schemas.ProduceRequest) or refused:
            return None
        refused.append(request)
        code = NotLeaderForPartitionError.code
        partition = schemas.ProducePartitionResponse(0, code, -1)
        return schemas.ProduceResponse([schemas.ProduceTopicResponse(topic, [partition])])

    proxy.intercept = refuse_once
    calls: list[Any] = []
    with KafkaProducer(bootstrap_servers=broker.address, retries=3) as producer:
        future = producer.send(topic, b"once", callback=lambda *ended: calls.append(ended))
        assert future.result(WAIT_S).offset == 0
        assert producer.metrics()["record-retry-total"] == 1
    assert len(refused) == 1
    assert [(metadata.offset, error) for metadata, error in calls] == [(0, None)]
    assert [found.value for found in stored(broker, topic)] == [b"once"]


# --- the mirror


@pytest.mark.scenario("client-39")
def test_39_a_mirror_keeps_the_order_of_each_key(
    broker: Broker, tools: Tools, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    topic = topic_on(broker, 3)
    target = Broker("ours", tmp_path / "target", f"{zookeeper.connect}/{tmp_path.name}")
    target.start()
    mirror = None
    try:
        target.create_topic(topic, 5)
        consumer, producer = tmp_path / "consumer.properties", tmp_path / "producer.properties"
        group = {"group.id": topic, "zookeeper.connect": broker.zookeeper}
        group |= {"auto.offset.reset": "smallest", "zookeeper.session.timeout.ms": 3000}
        consumer.write_text(properties(group))
        sends = {"metadata.broker.list": target.address, "producer.type": "async"}
        sends |= {"queue.buffering.max.ms": 100, "request.required.acks": -1}
        producer.write_text(properties(sends))
        args = ["--consumer.config", str(consumer), "--producer.config", str(producer)]
        args += ["--whitelist", topic, "--num.streams", "2", "--num.producers", "2"]
        mirror = tools.background("kafka.tools.MirrorMaker", *args)
        with broker.wire() as wire:
            for number in range(600):
                key = b"key-%d" % (number % 7)
                partition = byte_array_partitioner(key, 3)
                wire.produce(topic, partition, entry(key, b"%d" % number))

        def mirrored() -> bool:
            with contextlib.suppress(OSError):
                return sum(ends(target, topic, 5)) >= 600
            return False

        wait_until("the copies", WAIT_S, mirrored)
        seen: dict[bytes | None, list[int]] = {}
        places: dict[bytes | None, set[int]] = {}
        for number in range(5):
            for found in stored(target, topic, number):
                seen.setdefault(found.key, []).append(int(found.value or b"-1"))
                places.setdefault(found.key, set()).add(number)
        assert seen == {b"key-%d" % k: list(range(k, 600, 7)) for k in range(7)}
        assert all(len(found) == 1 for found in places.values())
    finally:
        if mirror is not None:
            mirror.kill()
        target.kill()
