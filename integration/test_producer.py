"""KafkaProducer against real brokers: what readers of all kinds find, and what failures leave."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration import original
from integration.clients import CODECS, Confluent, HighLevel, KafkaPython, Record, any_records
from integration.harness import HOME, Broker, Process, Tools, ZooKeeper, isr
from integration.wire import wait_until
from kafka08.errors import KafkaError, MessageSizeTooLargeError
from kafka08.producer.errors import (
    DeliveryTimeoutError,
    DisconnectedError,
    MetadataTimeoutError,
    RecordTooLargeError,
)
from kafka08.producer.kafka_producer import KafkaProducer

WAIT_S = 60


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def written(broker: Broker, records: list[Record], **settings: Any) -> str:
    """A new topic that holds the records, at the offsets their futures told."""
    topic = unique("producer")
    broker.create_topic(topic)
    with KafkaProducer(bootstrap_servers=broker.address, **settings) as producer:
        futures = [producer.send(topic, r.value, r.key, partition=0) for r in records]
        producer.flush(WAIT_S)
        assert [future.result(0).offset for future in futures] == list(range(len(records)))
    return topic


def stored(broker: Broker, topic: str) -> list[bytes | None]:
    """All values of partition 0, as kafka-python reads them."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=broker.address,
        api_version=(0, 8, 2),
        group_id=None,
        max_partition_fetch_bytes=4 << 20,
    )
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    end = consumer.end_offsets([partition])[partition]
    values: list[bytes | None] = []
    while len(values) < end:
        for batch in consumer.poll(500).values():
            values += [message.value for message in batch]
    consumer.close()
    return values


# --- what readers find


@pytest.mark.parametrize("codec", CODECS)
def test_every_reader_finds_the_records(broker: Broker, codec: str, tmp_path: Path) -> None:
    records = any_records()
    topic = written(broker, records, compression_type=codec, linger_ms=20, batch_size=4096)
    KafkaPython().check(broker, topic, records)
    Confluent().check(broker, topic, records)
    HighLevel(Tools("ours", tmp_path / "ours")).check(broker, topic, records)
    if original.available():
        HighLevel(Tools("original", tmp_path / "original")).check(broker, topic, records)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_large_values(broker: Broker, codec: str) -> None:
    records = [Record(None, bytes([n]) * 999_900) for n in range(5)]
    topic = written(broker, records, compression_type=codec)
    assert stored(broker, topic) == [record.value for record in records]


def test_texts(broker: Broker) -> None:
    texts = ["größe", "日本語", "\U0001f40d", ""]
    topic = unique("texts")
    broker.create_topic(topic)
    settings = {"key_serializer": str.encode, "value_serializer": str.encode}
    with KafkaProducer(bootstrap_servers=broker.address, **settings) as producer:
        for text in texts:
            producer.send(topic, text, text)
    assert stored(broker, topic) == [text.encode() for text in texts]


def test_a_topic_comes_into_being_with_its_first_record(broker: Broker) -> None:
    topic = unique("new")
    with KafkaProducer(bootstrap_servers=broker.address, retries=10) as producer:
        assert producer.send(topic, b"first").result(WAIT_S).offset == 0
        assert [p.partition for p in producer.partitions_for(topic)] == [0]


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_many_records_over_several_partitions(broker: Broker, acks: int) -> None:
    topic = unique("many")
    broker.create_topic(topic, 6)
    with KafkaProducer(bootstrap_servers=broker.address, acks=acks, linger_ms=2) as producer:
        futures = [producer.send(topic, b"%d" % n) for n in range(20_000)]
    where = [future.result(0) for future in futures]
    with broker.wire() as wire:

        def stored() -> int:
            return sum(wire.offset(topic, number) for number in range(6))

        if not acks:  # nobody says when the last ones are there
            wait_until("the last records", 30, lambda: stored() >= 20_000)
        assert stored() == 20_000
    if acks:
        assert len(set(where)) == 20_000
    else:
        assert {metadata.offset for metadata in where} == {-1}


# --- what goes wrong


def test_too_large_for_the_producer_or_for_the_broker(broker: Broker) -> None:
    topic = unique("large")
    broker.create_topic(topic)
    with KafkaProducer(bootstrap_servers=broker.address, max_request_size=4 << 20) as producer:
        futures = [producer.send(topic, b"x" * size) for size in (10, 2_000_000, 10, 5_000_000)]
        producer.flush(WAIT_S)
    assert isinstance(futures[1].exception(0), MessageSizeTooLargeError)
    assert isinstance(futures[3].exception(0), RecordTooLargeError)
    assert [futures[n].result(0).offset for n in (0, 2)] == [0, 1]


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_small_segments_take_batches_one_by_one(broker: Broker, codec: str) -> None:
    """A segment holds a batch, but not all that would fit into a request."""
    topic = unique("segments")
    broker.create_topic(topic, config={"segment.bytes": 20_000, "max.message.bytes": 10_000})
    settings = {"batch_size": 8000, "linger_ms": 200, "compression_type": codec}
    values = [random.Random(n).randbytes(90) + b"%06d" % n for n in range(3000)]
    with KafkaProducer(bootstrap_servers=broker.address, **settings) as producer:
        futures = [producer.send(topic, value) for value in values]
    assert [future.result(0).offset for future in futures] == list(range(3000))
    assert stored(broker, topic) == values


@pytest.mark.scenario("client-36")
def test_acks_0_learns_of_no_error_and_goes_on(broker: Broker) -> None:
    """The broker closes the connection over the large one; what comes later takes a new one."""
    topic = unique("acks0")
    broker.create_topic(topic)
    settings = {"acks": 0, "max_request_size": 4 << 20}
    with KafkaProducer(bootstrap_servers=broker.address, **settings) as producer:
        assert producer.send(topic, b"x" * 2_000_000).result(WAIT_S).offset == -1
        deadline = time.monotonic() + WAIT_S
        while b"later" not in stored(broker, topic):
            assert time.monotonic() < deadline
            producer.send(topic, b"later").exception(WAIT_S)
            producer.flush(WAIT_S)
            time.sleep(0.1)


@pytest.fixture
def own_broker(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> Iterator[Broker]:
    props = {"auto.create.topics.enable": "false"}
    broker = Broker("ours", tmp_path, f"{zookeeper.connect}/{unique('own')}", props=props)
    launch(broker)
    broker.start()
    yield broker
    if broker.alive:
        broker.resume()


def test_a_topic_that_does_not_exist(own_broker: Broker) -> None:
    settings = {"metadata_fetch_timeout_ms": 700}
    with KafkaProducer(bootstrap_servers=own_broker.address, **settings) as producer:
        begin = time.monotonic()
        future = producer.send("nowhere", b"v")
        assert 0.6 < time.monotonic() - begin < 10
        with pytest.raises(MetadataTimeoutError, match="nowhere"):
            future.result(0)


def test_nobody_listens() -> None:
    settings = {"metadata_fetch_timeout_ms": 300}
    with KafkaProducer(bootstrap_servers="127.0.0.1:1", **settings) as producer:
        future = producer.send("t", b"v")
    with pytest.raises(MetadataTimeoutError, match="Check bootstrap"):
        future.result(0)


@pytest.mark.parametrize("ordered", [True, False])
def test_kill_9_under_load_loses_nothing(own_broker: Broker, ordered: bool) -> None:
    topic = "killed"
    own_broker.create_topic(topic)
    producer = KafkaProducer(
        bootstrap_servers=own_broker.address,
        retries=1000,
        linger_ms=2,
        batch_size=2000,
        max_request_size=20_000,
        guarantee_message_order=ordered,
    )
    futures: list[Any] = []
    end = threading.Event()

    def load() -> None:
        while not end.is_set():
            futures.append(producer.send(topic, b"%08d" % len(futures)))
            if len(futures) % 500 == 0:
                time.sleep(0.01)

    thread = threading.Thread(target=load)
    thread.start()
    for _ in range(2):
        time.sleep(0.5)
        own_broker.kill()
        own_broker.start()
    time.sleep(0.5)
    end.set()
    thread.join()
    producer.flush(WAIT_S)
    offsets = [future.result(0).offset for future in futures]
    producer.close()
    values = stored(own_broker, topic)
    # Each acknowledged value is at the offset of its future; repetitions have other offsets.
    assert [values[offset] for offset in offsets] == [b"%08d" % n for n in range(len(futures))]
    if ordered:
        assert offsets == sorted(offsets)
        first_seen = list(dict.fromkeys(values))
        assert first_seen == sorted(first_seen, key=lambda value: value or b"")


def test_a_broker_that_hangs_and_comes_back(own_broker: Broker) -> None:
    topic = "hangs"
    own_broker.create_topic(topic)
    settings = {"timeout_ms": 500, "request_timeout_ms": 1000}
    with KafkaProducer(bootstrap_servers=own_broker.address, **settings) as producer:
        producer.send(topic, b"before").result(WAIT_S)
        own_broker.pause()
        begin = time.monotonic()
        future = producer.send(topic, b"lost")
        with pytest.raises(DisconnectedError, match="no answer for 1 s"):
            future.result(WAIT_S)
        assert time.monotonic() - begin < 10
        own_broker.resume()
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                producer.send(topic, b"after").result(WAIT_S)
                break
            except KafkaError:
                assert time.monotonic() < deadline
    assert stored(own_broker, topic)[-1] == b"after"


def test_close_with_records_pending(own_broker: Broker) -> None:
    topic = "pending"
    own_broker.create_topic(topic)
    producer = KafkaProducer(bootstrap_servers=own_broker.address, retries=1000)
    producer.send(topic, b"before").result(WAIT_S)
    own_broker.pause()
    futures = [producer.send(topic, b"%d" % n) for n in range(1000)]
    begin = time.monotonic()
    producer.close(0.5)
    assert time.monotonic() - begin < 15
    assert {type(future.exception(0)) for future in futures} == {DeliveryTimeoutError}


# --- processes and runtimes


def script(code: str, broker: Broker, topic: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, broker.address, topic],
        capture_output=True,
        cwd=HOME,
        timeout=WAIT_S,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


FORKS = """
import os, sys
from kafka08.producer.errors import ForkedProducerError
from kafka08.producer.kafka_producer import KafkaProducer
address, topic = sys.argv[1:]
producer = KafkaProducer(bootstrap_servers=address)
producer.send(topic, b"parent").result(30)
pid = os.fork()
if pid == 0:
    try:
        producer.send(topic, b"never")
    except ForkedProducerError:
        with KafkaProducer(bootstrap_servers=address) as own:
            own.send(topic, b"child").result(30)
        os._exit(0)
    os._exit(1)
assert os.waitpid(pid, 0)[1] == 0
producer.send(topic, b"parent again").result(30)
producer.close()
"""

NOT_CLOSED = """
import sys
from kafka08.producer.kafka_producer import KafkaProducer
producer = KafkaProducer(bootstrap_servers=sys.argv[1], linger_ms=600000)
producer.send(sys.argv[2], b"not forgotten")
"""

OLD_NOT_CLOSED = """
import sys
from kafka08.producer.config import ProducerConfig
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.producer import Producer
config = ProducerConfig(metadata_broker_list=(sys.argv[1],), producer_type="async",
    queue_buffering_max_ms=600000, request_required_acks=1)
Producer(config).send(KeyedMessage(sys.argv[2], b"not forgotten either"))
"""

OLD_ON_GREENLETS = """
import sys
import gevent
from kafka08.producer.config import ProducerConfig
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.producer import Producer
from kafka08.runtime import GeventRuntime
config = ProducerConfig(metadata_broker_list=(sys.argv[1],), producer_type="async",
    queue_buffering_max_messages=2, batch_num_messages=2, request_required_acks=1)
with Producer(config, runtime=GeventRuntime()) as producer:
    work = [gevent.spawn(producer.send, KeyedMessage(sys.argv[2], b"same")) for _ in range(9)]
    gevent.joinall(work, raise_error=True)
"""

LOGS = """
import logging, os, sys, threading
from kafka08.producer.logging_handler import KafkaLoggingHandler
handler = KafkaLoggingHandler(sys.argv[2], sys.argv[1], max_block_ms=20000, sync_send=True)
logging.getLogger().addHandler(handler)
logging.getLogger().setLevel(logging.DEBUG)
logging.getLogger("app").info("parent")
pid = os.fork()
if pid == 0:
    logging.getLogger("app").info("child")
    os._exit(handler.dropped)
assert os.waitpid(pid, 0)[1] == 0
logging.getLogger("app").info("parent again")
"""

GREENLETS = """
import sys
import gevent
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.runtime import GeventRuntime
address, topic = sys.argv[1:]
runtime = GeventRuntime()
with KafkaProducer(bootstrap_servers=address, runtime=runtime, linger_ms=5) as producer:
    def work(number):
        return [producer.send(topic, b"%d:%d" % (number, n)).result(30) for n in range(20)]
    done = [gevent.spawn(work, number) for number in range(5)]
    gevent.joinall(done, raise_error=True)
print(len({metadata.offset for greenlet in done for metadata in greenlet.value}))
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (FORKS, [b"parent", b"child", b"parent again"]),
        (NOT_CLOSED, [b"not forgotten"]),
        (OLD_NOT_CLOSED, [b"not forgotten either"]),
        (OLD_ON_GREENLETS, [b"same"] * 9),
        (LOGS, [b"parent", b"child", b"parent again"]),
    ],
    ids=["forks", "not-closed", "old-not-closed", "old-on-greenlets", "logs"],
)
def test_processes(own_broker: Broker, code: str, expected: list[bytes]) -> None:
    own_broker.create_topic("process")
    script(code, own_broker, "process")
    assert stored(own_broker, "process") == expected


def test_on_greenlets(own_broker: Broker) -> None:
    own_broker.create_topic("greenlets")
    assert script(GREENLETS, own_broker, "greenlets").strip() == "100"


def test_the_leader_is_killed_and_the_other_replica_goes_on(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    chroot = f"{zookeeper.connect}/{unique('pair')}"
    brokers = [
        Broker("ours", tmp_path / str(number), chroot, broker_id=number) for number in range(2)
    ]
    for broker in brokers:
        launch(broker)
        broker.start()
    client = zookeeper.client(chroot.removeprefix(zookeeper.connect))
    payload = json.dumps({"version": 1, "partitions": {"0": [0, 1]}}).encode()
    client.create("/brokers/topics/pair", payload, makepath=True)

    wait_until("a full isr", WAIT_S, lambda: isr(chroot, "pair") == [0, 1])
    bootstrap = [broker.address for broker in brokers]
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", retries=1000, linger_ms=2, batch_size=2000
    )
    futures = []
    for number in range(20_000):
        futures.append(producer.send("pair", b"%08d" % number))
        if number == 5000:
            futures[1000].result(WAIT_S)
            brokers[0].kill()
    producer.flush(WAIT_S)
    offsets = [future.result(0).offset for future in futures]
    producer.close()
    client.stop()
    client.close()
    values = stored(brokers[1], "pair")
    assert [values[offset] for offset in offsets] == [b"%08d" % n for n in range(20_000)]
    assert offsets == sorted(offsets)
