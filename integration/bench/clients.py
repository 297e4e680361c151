"""Clients side by side on one broker: records per second, and the CPU of the client itself.

`python -m integration.bench.clients`. Producers: KafkaProducer of ours, kafka-python, librdkafka
and the original's ProducerPerformance; consumers likewise, with ConsumerPerformance. Each client
runs in a process of its own, first come first served in every round, and a number is the median
of its rounds. Clients that are not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from integration import harness, original
from integration.bench.machine import described
from integration.bench.table import text
from integration.clients import KAFKA_08
from integration.harness import HOME, Broker, Tools, ZooKeeper, kill_everything
from integration.modern import ModernBroker
from integration.wire import Wire
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.producer.kafka_producer import KafkaProducer

Server = Broker | ModernBroker
PARTITIONS = 6
LINGER_MS = 5
WARM_UP = 1000
KINDS = ("ours", "kafka-python", "librdkafka", "original")
WORKER_TIMEOUT_S = 300


class Case(NamedTuple):
    """The work of one client."""

    side: str
    size: int
    records: int
    codec: str = "none"

    @property
    def name(self) -> str:
        codec = "" if self.codec == "none" else f", {self.codec}"
        return f"{self.side} {self.size} B{codec}"


CASES = (
    Case("produce", 100, 400_000),
    Case("produce", 1000, 100_000),
    Case("produce", 100, 200_000, "snappy"),
    Case("consume", 100, 400_000),
    Case("consume", 1000, 100_000),
)


class Result(NamedTuple):
    """Of one run; ``cpu``: seconds of the client's process, None where that is not known."""

    records: int
    seconds: float
    cpu: float | None


# --- producers; each returns a send and a flush


Sender = tuple[Callable[[str, bytes], Any], Callable[[], Any]]


def _ours_producer(address: str, codec: str) -> Sender:
    producer = KafkaProducer(bootstrap_servers=address, linger_ms=LINGER_MS, compression_type=codec)
    return producer.send, producer.flush


def _kafka_python_producer(address: str, codec: str) -> Sender:
    import kafka

    producer = kafka.KafkaProducer(
        bootstrap_servers=address,
        api_version=(0, 8, 2),
        linger_ms=LINGER_MS,
        compression_type=None if codec == "none" else codec,
    )
    return producer.send, producer.flush


def _librdkafka_producer(address: str, codec: str) -> Sender:
    from confluent_kafka import Producer

    config = {**KAFKA_08, "bootstrap.servers": address, "linger.ms": LINGER_MS, "acks": 1}
    producer = Producer({**config, "compression.codec": codec, "log_level": 3})

    def send(topic: str, value: bytes) -> None:
        while True:
            try:
                producer.produce(topic, value)
                return
            except BufferError:
                producer.poll(0.01)

    return send, producer.flush


def produce(kind: str, case: Case, address: str, topic: str) -> Result:
    make = {
        "ours": _ours_producer,
        "kafka-python": _kafka_python_producer,
        "librdkafka": _librdkafka_producer,
    }[kind]
    send, flush = make(address, case.codec)
    value = b"x" * case.size
    for _ in range(WARM_UP):
        send(topic, value)
    flush()
    cpu, begin = time.process_time(), time.perf_counter()
    for _ in range(case.records):
        send(topic, value)
    flush()
    return Result(case.records, time.perf_counter() - begin, time.process_time() - cpu)


# --- consumers; each yields nothing but counts


def _ours_consumer(address: str, zookeeper: str, topic: str) -> Callable[[int], None]:
    config = ConsumerConfig(
        group_id=f"bench-{time.time_ns()}",
        zookeeper_connect=zookeeper,
        auto_offset_reset="smallest",
    )
    stream = ConsumerConnector(config).create_message_streams({topic: 1})[topic][0]

    def read(count: int) -> None:
        for _ in range(count):
            assert next(stream).value

    return read


def _kafka_python_consumer(address: str, zookeeper: str, topic: str) -> Callable[[int], None]:
    import kafka

    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=address,
        api_version=(0, 8, 2),
        group_id=None,
        auto_offset_reset="earliest",
    )

    def read(count: int) -> None:
        for _ in range(count):
            assert next(consumer).value

    return read


def _librdkafka_consumer(address: str, zookeeper: str, topic: str) -> Callable[[int], None]:
    from confluent_kafka import Consumer, TopicPartition

    config = {**KAFKA_08, "bootstrap.servers": address, "group.id": "unused", "log_level": 3}
    consumer = Consumer({**config, "enable.auto.commit": False, "enable.auto.offset.store": False})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    left: list[Any] = []

    def read(count: int) -> None:
        while count:
            if not left:
                left.extend(consumer.consume(1000, 5))
            taken = left[:count]
            del left[:count]
            for message in taken:
                assert message.value()
            count -= len(taken)

    return read


def consume(kind: str, case: Case, address: str, zookeeper: str, topic: str) -> Result:
    make = {
        "ours": _ours_consumer,
        "kafka-python": _kafka_python_consumer,
        "librdkafka": _librdkafka_consumer,
    }[kind]
    read = make(address, zookeeper, topic)
    read(WARM_UP)
    cpu, begin = time.process_time(), time.perf_counter()
    count = case.records - WARM_UP
    read(count)
    return Result(count, time.perf_counter() - begin, time.process_time() - cpu)


# --- the original's own programs


def original_produced(tools: Tools, case: Case, broker: Server, topic: str) -> harness.Result:
    """A run of the producer."""
    settings = [f"bootstrap.servers={broker.address}", "acks=1", f"linger.ms={LINGER_MS}"]
    settings += [f"compression.type={case.codec}"]
    sent = topic, str(case.records), str(case.size), "-1"
    main = "org.apache.kafka.clients.tools.ProducerPerformance"
    return tools.run(main, *sent, *settings, timeout=WORKER_TIMEOUT_S)


def original_produce(tools: Tools, case: Case, broker: Broker, topic: str) -> Result:
    """CPU is left out: most of it would be the JVM's start."""
    done = original_produced(tools, case, broker, topic)
    found = re.search(r"(\d+) records sent, ([\d.]+) records/sec", done.out.splitlines()[-1])
    assert found is not None, done.out + done.err
    return Result(case.records, case.records / float(found[2]), None)


def original_consume(tools: Tools, case: Case, broker: Broker, topic: str) -> Result:
    """It reads on until nothing came for 5 s, and takes these 5 s off again."""
    options = ["--zookeeper", broker.zookeeper, "--topic", topic, "--threads", "1"]
    done = tools.run("kafka.tools.ConsumerPerformance", *options, "--messages", "1000000000")
    fields = done.out.splitlines()[-1].split(",")
    assert int(fields[4 + 1]) >= case.records, done.out + done.err
    return Result(int(fields[5]), int(fields[5]) / float(fields[6]), None)


# --- a run


def worker(kind: str, case: Case, broker: Server, topic: str) -> Result:
    """The client in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "integration.bench.clients"]
    command += ["--worker", kind, json.dumps(case), broker.address, broker.zookeeper or "", topic]
    done = subprocess.run(
        command, capture_output=True, cwd=HOME, timeout=WORKER_TIMEOUT_S, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{kind}, {case.name}: {done.stderr[-2000:]}")
    return Result(*json.loads(done.stdout.splitlines()[-1]))


def run_one(kind: str, case: Case, broker: Broker, topic: str, tools: Tools) -> Result:
    if kind != "original":
        return worker(kind, case, broker, topic)
    run = original_produce if case.side == "produce" else original_consume
    return run(tools, case, broker, topic)


def available(kinds: tuple[str, ...]) -> list[str]:
    here = {
        "ours": True,
        "kafka-python": importlib.util.find_spec("kafka") is not None,
        "librdkafka": importlib.util.find_spec("confluent_kafka") is not None,
        "original": original.available(),
    }
    return [kind for kind in kinds if here[kind]]


def check_stored(broker: Server, topic: str, records: int, what: str) -> None:
    """A fast client that loses records is none."""
    with Wire(broker.port) as wire:
        found = sum(wire.offset(topic, number) for number in range(PARTITIONS))
    if found < records:
        raise RuntimeError(f"{what}: {records} sent, {found} stored")


def measure(
    kinds: list[str], cases: list[Case], rounds: int, broker_kind: str, directory: Path
) -> dict[tuple[str, str], list[Result]]:
    zookeeper = ZooKeeper(directory / "zookeeper").start()
    props = {"delete.topic.enable": "true", "zookeeper.session.timeout.ms": 6000}
    chroot = f"{zookeeper.connect}/{broker_kind}"
    broker = Broker(broker_kind, directory / "broker", chroot, props=props).start()
    tools = Tools("original", directory / "tools")
    results: dict[tuple[str, str], list[Result]] = {}
    for case in cases:
        filled = f"filled-{case.size}"
        if case.side == "consume":
            broker.create_topic(filled, PARTITIONS)
            worker("ours", case._replace(side="produce"), broker, filled)
        for number in range(rounds):
            for kind in kinds[number % len(kinds) :] + kinds[: number % len(kinds)]:
                print(f"round {number + 1}: {case.name}, {kind}", file=sys.stderr, flush=True)
                topic = filled
                if case.side == "produce":
                    topic = f"bench-{len(results)}-{number}-{kind}"
                    broker.create_topic(topic, PARTITIONS)
                result = run_one(kind, case, broker, topic, tools)
                results.setdefault((case.name, kind), []).append(result)
                if case.side == "produce":
                    check_stored(broker, topic, case.records, f"{case.name}, {kind}")
                    broker.delete_topic(topic)
    return results


def table(results: dict[tuple[str, str], list[Result]], kinds: list[str]) -> str:
    def rate(case: str, kind: str) -> float:
        return statistics.median(r.records / r.seconds / 1e3 for r in results[case, kind])

    def cpu(case: str, kind: str) -> float | None:
        used = [r.cpu / r.records * 1e6 for r in results[case, kind] if r.cpu is not None]
        return statistics.median(used) if used else None

    head = ["case", *(f"{kind} k/s" for kind in kinds), *(f"{kind} CPU us" for kind in kinds)]
    lines = []
    for case in dict.fromkeys(name for name, _ in results):
        costs = [cpu(case, kind) for kind in kinds]
        line = [case, *(f"{rate(case, kind):.0f}" for kind in kinds)]
        line += ["-" if cost is None else f"{cost:.2f}" for cost in costs]
        if "kafka-python" in kinds:
            theirs = cpu(case, "kafka-python")
            line.append(f"{rate(case, 'ours') / rate(case, 'kafka-python'):.1f}")
            line.append(f"{(theirs or 0) / (costs[kinds.index('ours')] or 1):.1f}")
        lines.append(line)
    if "kafka-python" in kinds:
        head += ["ours / kafka-python", "CPU kafka-python / ours"]
    return text([head, ["-"] * len(head), *lines])


def run_worker(arguments: list[str]) -> int:
    kind, case_text, address, zookeeper, topic = arguments
    case = Case(*json.loads(case_text))
    if case.side == "produce":
        result = produce(kind, case, address, topic)
    else:
        result = consume(kind, case, address, zookeeper, topic)
    print(json.dumps(result), flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m integration.bench.clients", description=__doc__
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only cases whose name holds this")
    parser.add_argument("--broker", choices=("ours", "original"), default="ours")
    parser.add_argument("--clients", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return run_worker(options.worker)
    kinds = available(tuple(options.clients))
    cases = [case for case in CASES if options.only in case.name]
    try:
        with tempfile.TemporaryDirectory(prefix="kafka08-bench-") as directory:
            results = measure(kinds, cases, options.rounds, options.broker, Path(directory))
    finally:
        kill_everything()
    print(f"{described()}, median of {options.rounds}\n")
    print(table(results, kinds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
