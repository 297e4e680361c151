"""A key-value store whose changes are a topic: killed at any moment, it continues from its log.

    python docs/examples/commit_log.py --bootstrap-server localhost:9092

A change is in the topic first, on all in-sync replicas, then in memory. So memory can be lost: a
store that starts reads the topic, which is compacted, and has the state again. The program counts
stock: change n sets the key of an article to n, or deletes it. Started again, it continues after
the last change that its log holds.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
import zlib
from collections.abc import Sequence

import charts
import topics

from kafka08.client.admin import AdminClient
from kafka08.client.cluster import parse_broker_list
from kafka08.errors import TopicExistsError
from kafka08.producer.kafka_producer import KafkaProducer

TOPIC = "stock"
# A change with one of these numbers deletes its key.
DELETES = 10


class Store:
    """The keys and values in ``topic``. One process may write, any number may read."""

    def __init__(self, address: str, topic: str) -> None:
        self.state: dict[str, int] = {}
        self.recovered = 0
        self._topic = topic
        for message in topics.read(address, topic):
            self._apply(message.key, message.value)
            self.recovered += 1
        # One request at a time for each partition: with retries, the order is kept.
        self._producer = KafkaProducer(bootstrap_servers=address, acks="all", retries=10)

    def put(self, key: str, value: int | None) -> None:
        """Returns when the change cannot be lost any more. None deletes. Raises KafkaError."""
        raw = None if value is None else str(value).encode()
        self._producer.send(self._topic, raw, key.encode()).result(60)
        self._apply(key.encode(), raw)

    def _apply(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.state.pop(key.decode(), None)
        else:
            self.state[key.decode()] = int(value)

    @property
    def digest(self) -> str:
        """Equal for equal states."""
        return f"{zlib.crc32(repr(sorted(self.state.items())).encode()):08x}"

    def close(self) -> None:
        self._producer.close()


def change(number: int, keys: int) -> tuple[str, int | None]:
    """The key and value of a change."""
    key = f"article-{number * 7919 % keys:03d}"
    return key, None if number % DELETES == 0 else number


def create(address: str, topic: str, replicas: int) -> None:
    """One partition, as only the changes of one partition have an order."""
    config = {"cleanup.policy": "compact", "min.insync.replicas": str(min(replicas, 2))}
    with AdminClient(parse_broker_list(address)) as client:
        with contextlib.suppress(TopicExistsError):  # of a store that continues
            client.create_topic(topic, 1, replicas, config=config)
        client.create_by_metadata(topic)


def run(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bootstrap-server", default=topics.ADDRESS)
    parser.add_argument("--changes", type=int, default=1000, help="the number of the last change")
    parser.add_argument("--keys", type=int, default=53)
    parser.add_argument("--replicas", type=int, default=1, help="brokers that keep the log")
    args = parser.parse_args(argv)
    create(args.bootstrap_server, TOPIC, args.replicas)
    began = time.monotonic()
    store = Store(args.bootstrap_server, TOPIC)
    took = time.monotonic() - began
    print(f"Recovered {len(store.state)} keys from {store.recovered} changes in {took:.2f} s.")
    # A change may be repeated: it sets the same value again. Deletions after this one are repeated.
    last = max(store.state.values(), default=0)
    for number in range(last + 1, args.changes + 1):
        store.put(*change(number, args.keys))
        if number % 100 == 0:
            print(f"Change {number} is stored.", flush=True)
    store.close()
    other = Store(args.bootstrap_server, TOPIC)
    other.close()
    rows = [
        (name, len(each.state), max(each.state.values(), default=0), each.digest)
        for name, each in (("this one", store), ("a new one", other))
    ]
    print(charts.table(("store", "keys", "last value", "digest"), rows))
    newest = sorted(store.state.items(), key=lambda item: item[1], reverse=True)[:5]
    print("Articles changed last:\n" + charts.table(("article", "set by change"), newest))
    return 0 if store.state == other.state else 1


if __name__ == "__main__":
    sys.exit(run())
