"""Messaging: a work queue of which a worker dies, and publish-subscribe.

    .venv/bin/python docs/examples/messaging.py

messaging.md describes it.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator

import charts
import topics

from kafka08.client.cluster import parse_broker_list
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.standalone import StandaloneConsumer
from kafka08.producer.kafka_producer import KafkaProducer

TASKS, DONE, NEWS = "tasks", "tasks-done", "news"
WORKERS = ["worker 1", "worker 2", "worker 3"]
PARTITIONS = 6


def member(zookeeper: str, group: str) -> ConsumerConnector:
    """A member of ``group``. A new group begins with the oldest message."""
    config = ConsumerConfig(
        group_id=group,
        zookeeper_connect=zookeeper,
        auto_offset_reset="smallest",
        auto_commit_interval_ms=1000,
        offsets_storage="kafka",
        dual_commit_enabled=False,
        consumer_timeout_ms=topics.TIMEOUT_MS,
    )
    return ConsumerConnector(config)


def work(address: str, zookeeper: str, run: str, name: str, dies_after: int | None) -> None:
    """One worker, as a process: does tasks until it is terminated, or kills itself as kill -9."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with (
        KafkaProducer(bootstrap_servers=address, acks="all", retries=3) as producer,
        member(zookeeper, "workers") as connector,
    ):
        [stream] = connector.create_message_streams({TASKS: 1})[TASKS]
        while connector.metrics()["OwnedPartitionsCount"] != PARTITIONS / len(WORKERS):
            time.sleep(0.1)
        producer.send(DONE, b"ready", key=run.encode()).result(60)
        for number, message in enumerate(stream, 1):
            time.sleep(0.01)  # the work
            producer.send(DONE, name.encode(), key=message.value).result(60)
            if number == dies_after:
                os.kill(os.getpid(), signal.SIGKILL)


def queue(address: str, zookeeper: str, run: str, count: int, dies_after: int) -> None:
    """``count`` tasks for a group of workers, of which the last one dies."""
    config = ConsumerConfig(
        group_id="unused",
        zookeeper_connect="unused",
        auto_offset_reset="smallest",
        consumer_timeout_ms=topics.TIMEOUT_MS,
    )
    # Processes, as a worker is to be killed. They begin with a new interpreter each.
    context = multiprocessing.get_context("spawn")
    processes = []
    for name in WORKERS:
        given = (address, zookeeper, run, name, dies_after if name == WORKERS[-1] else None)
        processes.append(context.Process(target=work, args=given, daemon=True))
        processes[-1].start()
    done: Counter[bytes] = Counter()
    shares: Counter[str] = Counter()
    ready = 0
    with (
        StandaloneConsumer(parse_broker_list(address), config) as consumer,
        KafkaProducer(bootstrap_servers=address, acks="all", retries=3) as producer,
    ):
        for message in consumer.stream(DONE):
            if message.key == run.encode():
                ready += 1
                if ready == len(WORKERS):
                    producer.send_many(TASKS, [f"{run} {n}".encode() for n in range(count)])
            elif message.key.startswith(run.encode()):
                done[message.key] += 1
                shares[message.value.decode()] += 1
                if len(done) == count:
                    break
    for process in processes:
        process.terminate()
        process.join(60)
    again = sum(times > 1 for times in done.values())
    print(charts.bars(f"Work queue: {count} tasks, by worker", [(n, shares[n]) for n in WORKERS]))
    print(f"{WORKERS[-1]} was killed after {dies_after} tasks.")
    print(f"Tasks not done: {count - len(done)}. Done more than once: {again}.\n")


def news(zookeeper: str, group: str, run: str, count: int) -> list[bytes]:
    """The next ``count`` news of this run that the group did not read yet."""
    with member(zookeeper, group) as connector:
        [stream] = connector.create_message_streams({NEWS: 1})[NEWS]
        found: Iterator[bytes] = (each.value for each in stream if run.encode() in each.value)
        read = list(itertools.islice(found, count))
        # Includes the message that was returned last; close() does not.
        if not connector.commit_offsets():
            raise SystemExit(f"The offsets of the group {group} were not stored")
    return read


def publish(address: str, zookeeper: str, run: str, count: int) -> None:
    """``count`` news for several groups. One of them stops in between and comes back."""
    with KafkaProducer(bootstrap_servers=address, acks="all", retries=3) as producer:
        producer.send_many(NEWS, [f"{run} {number}".encode() for number in range(count)])
    stops_after = {"mail": count, "statistics": count, "search-index": count * 3 // 5}
    rows = []
    for group, first in stops_after.items():
        before = news(zookeeper, group, run, first)
        after = news(zookeeper, group, run, count - first) if first < count else []
        rows.append([group, len(before), len(after), len({*before, *after})])
    print(f"Publish-subscribe: {count} messages, read by each group")
    print(charts.table(["group", "before its restart", "after it", "different messages"], rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", default=topics.ADDRESS)
    parser.add_argument("--zookeeper", default="localhost:2181", help="keeps the groups' members")
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--dies-after", type=int, default=25, help="tasks of the last worker")
    args = parser.parse_args()
    address, run = args.bootstrap_server, uuid.uuid4().hex[:8]
    for topic, partitions in ((TASKS, PARTITIONS), (DONE, 1), (NEWS, 2)):
        topics.make(address, topic, partitions, {"retention.ms": str(7 * 24 * 3600 * 1000)})
    queue(address, args.zookeeper, run, args.tasks, args.dies_after)
    publish(address, args.zookeeper, run, args.tasks)


if __name__ == "__main__":
    main()
