"""Orders kept as events: what happened is stored, the state follows from it.

    python docs/examples/event_sourcing.py --bootstrap-server localhost:9092

``order-events`` holds what happened to each order, under the order's name as key. The state of the
orders is rebuilt in two ways: from all events, and from a snapshot in ``order-snapshots``, a
compacted topic, with the events after it. Both must be equal.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import charts
import topics

from kafka08.client.cluster import parse_broker_list
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.standalone import StandaloneConsumer
from kafka08.producer.kafka_producer import KafkaProducer

EVENTS, SNAPSHOTS = "order-events", "order-snapshots"
PARTITIONS = 3
# From which states an event is possible, and the state after it.
RULES = {
    "placed": ((None,), "open"),
    "added": (("open",), "open"),
    "paid": (("open",), "paid"),
    "shipped": (("paid",), "shipped"),
    "cancelled": (("open", "paid"), "cancelled"),
}


class Rebuilt(NamedTuple):
    """The orders by name, the next offset of each partition, and how many messages were read."""

    orders: dict[str, dict[str, Any]]
    positions: dict[int, int]
    read: int


def happens(count: int, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Events of ``count`` orders in a random order; some of them are not possible."""
    chance = random.Random(seed)
    names = [f"order-{seed}-{number:04d}" for number in range(count)]
    yield from ((name, {"event": "placed"}) for name in names)
    for _ in range(5 * count):
        event = chance.choice(("added", "added", "paid", "shipped", "cancelled"))
        amount = {"amount": chance.randint(1, 100)} if event == "added" else {}
        yield chance.choice(names), {"event": event, **amount}


def apply(orders: dict[str, dict[str, Any]], name: str, event: Mapping[str, Any], at: int) -> None:
    """Change the state of one order. An event that it contains already changes nothing."""
    order = orders.setdefault(name, {"state": None, "amount": 0, "refused": 0, "offset": -1})
    if at <= order["offset"]:
        return
    before, after = RULES[event["event"]]
    if order["state"] in before:
        order.update(state=after, amount=order["amount"] + event.get("amount", 0))
    else:
        order["refused"] += 1
    order["offset"] = at


def events_from(address: str, positions: Mapping[int, int]) -> Iterator[Any]:
    """The events from these offsets to the present ends, partition by partition."""
    config = ConsumerConfig(
        group_id="unused", zookeeper_connect="unused", consumer_timeout_ms=60_000
    )
    for partition, (first, end) in topics.bounds(address, EVENTS).items():
        start = max(positions.get(partition, 0), first)
        if start < end:
            with StandaloneConsumer(parse_broker_list(address), config) as consumer:
                for message in consumer.stream(EVENTS, partition, start):
                    yield message
                    if message.offset >= end - 1:
                        break


def rebuild(address: str, *, use_snapshot: bool) -> Rebuilt:
    orders: dict[str, dict[str, Any]] = {}
    positions: dict[int, int] = {}
    read = 0
    for message in topics.read(address, SNAPSHOTS) if use_snapshot else ():
        kind, _, name = message.key.decode().partition(" ")
        value = json.loads(message.value)
        if kind == "order":
            orders[name] = value  # a later message of the same key replaces it
        else:
            positions[int(name)] = value
        read += 1
    for message in events_from(address, positions):
        apply(orders, message.key.decode(), json.loads(message.value), message.offset)
        positions[message.partition] = message.offset + 1
        read += 1
    return Rebuilt(orders, positions, read)


def write_snapshot(producer: KafkaProducer, found: Rebuilt) -> None:
    """The orders first: positions that are stored speak for orders that are stored."""
    for part, values in (("order", found.orders), ("position", found.positions)):
        sent = [
            producer.send(SNAPSHOTS, json.dumps(value).encode(), f"{part} {name}".encode())
            for name, value in values.items()
        ]
        for future in sent:
            future.result(60)


def run(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", default=topics.ADDRESS)
    parser.add_argument("--orders", type=int, default=200)
    args = parser.parse_args(argv)
    address = args.bootstrap_server
    topics.make(address, EVENTS, PARTITIONS)
    topics.make(address, SNAPSHOTS, 1, {"cleanup.policy": "compact"})
    with KafkaProducer(bootstrap_servers=address, acks="all", retries=10) as producer:
        # Nine tenths happen before the snapshot, one tenth after it.
        for seed, count in ((1, args.orders * 9 // 10), (2, args.orders // 10)):
            for name, event in happens(count, seed):
                producer.send(EVENTS, json.dumps(event).encode(), name.encode())
            producer.flush(60)
            if seed == 1:
                write_snapshot(producer, rebuild(address, use_snapshot=True))
    rows, rebuilt = [], []
    for text in ("all events", "snapshot and later events"):
        rebuilt.append(rebuild(address, use_snapshot=text.startswith("snapshot")))
        rows.append((text, rebuilt[-1].read, len(rebuilt[-1].orders)))
    print(charts.table(("rebuilt from", "messages", "orders"), rows))
    orders = rebuilt[0].orders.values()
    print(charts.bars("Orders by state", sorted(Counter(o["state"] for o in orders).items())))
    total = sum(order["amount"] for order in orders if order["state"] in ("paid", "shipped"))
    refused = sum(order["refused"] for order in orders)
    print(f"Paid: {total}. Events that were not possible: {refused}.")
    is_equal = rebuilt[0].orders == rebuilt[1].orders
    print("Both states are equal." if is_equal else "The states differ.")
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(run())
