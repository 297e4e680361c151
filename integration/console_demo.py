"""A cluster with something to see on every page of the console.

`python -m integration.console_demo` runs one until Ctrl-C and prints its address. Three brokers,
one of which is dead; topics of JSON with headers; groups that keep up, fall behind and have
stopped; transactions that are open, late and hang; access rules, users, quotas, and changes.
"""

from __future__ import annotations

import html
import itertools
import json
import re
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from integration import hanging
from integration.console import Console
from integration.harness import Broker, ZooKeeper, free_port
from integration.wire import wait_until

WAIT_S = 60
TOPICS = {
    "orders": (6, {"retention.ms": "604800000", "min.insync.replicas": "2"}),
    "payments": (3, {"min.insync.replicas": "1"}),
    "customers": (3, {"cleanup.policy": "compact"}),
    "page-views": (12, {"retention.bytes": "1073741824"}),
    "warehouse.stock-levels.by-country-and-article": (2, {}),
}
LIVE, DEAD = (1, 2), 3
FULL_NAME = "warehouse.stock-levels.by-country-and-article"


class Page(NamedTuple):
    """``name``: of its picture. ``heading``: a part of the text of its h1."""

    name: str
    path: str
    heading: str


_RULE = (
    "resource_type=TOPIC&pattern_type=LITERAL&resource_name=payments&principal=User%3Aann"
    "&permission=ALLOW&operation=READ&host=*"
)
PAGES = (
    Page("overview", "/", "Overview"),
    Page("brokers", "/brokers", "Brokers"),
    Page("broker", "/brokers/1", "Broker 1"),
    Page("broker-dead", "/brokers/3", "Broker 3"),
    Page("broker-settings", "/brokers/1/settings", "Settings of broker 1"),
    Page("what-if", "/brokers/1/what-if", "If broker 1 died now"),
    Page("topics", "/topics", "Topics"),
    Page("topics-none", "/topics?name=nothing-like-this", "Topics"),
    Page("topic", "/topics/orders", "orders"),
    Page("topic-long-name", f"/topics/{FULL_NAME}", FULL_NAME),
    Page("partition", "/topics/orders/0", "Partition 0"),
    Page("messages", "/topics/orders/messages?from=newest", "Messages of"),
    Page("messages-search", "/topics/orders/messages?from=oldest&has=gift", "Messages of"),
    Page("messages-all", "/topics/orders/messages/all?from=newest", "Messages of all"),
    Page("send", "/topics/orders/send", "Send a message"),
    Page("topic-settings", "/topics/orders/settings", "Settings of"),
    Page("change", "/topics/orders/change", "Change"),
    Page("create", "/create", "Create a topic"),
    Page("groups", "/groups", "Groups"),
    Page("group", "/group?name=billing", "billing"),
    Page("reset", "/group/reset?name=search-index&topic=&to=earliest&at=", "Set the offsets"),
    Page("delete-group", "/group/delete?name=search-index", "Delete"),
    Page("transactions", "/transactions", "Transactions"),
    Page("abort", "/transactions/abort?transaction=", "Abort"),
    Page("migration", "/migration", "Migration"),
    Page("events", "/events", "Events"),
    Page("acls", "/acls", "Access rules"),
    Page("acls-of-one", "/acls?principal=User:ann", "Access rules"),
    Page("add-acl", f"/acls/add?{_RULE}&check=1", "Add an access rule"),
    Page("delete-acl", f"/acls/delete?{_RULE.replace('payments', 'orders')}", "Delete"),
    Page("users", "/users", "Users"),
    Page("add-user", "/users/add", "Add a user"),
    Page("password", "/users/password?user=ann", "Set a password"),
    Page("delete-user", "/users/delete?user=ann", "Delete"),
    Page("quotas", "/quotas", "Quotas"),
    Page("set-quotas", "/quotas/set", "Set quotas"),
    Page("remove-quotas", "/quotas/remove?user_is=named&user=ann", "Remove"),
    Page("elections", "/elect", "Preferred election"),
    Page("moves", "/reassign?topics=__consumer_offsets&brokers=1,2", "Move partitions"),
    Page("zookeeper", "/zookeeper/brokers/ids/1", "ZooKeeper"),
    Page("zookeeper-root", "/zookeeper/", "ZooKeeper"),
    Page("changes", "/audit", "Changes"),
    Page("not-found", "/topics/no-such-topic", "Not Found"),
)


class Demo:
    """Used by ``with``: what it started ends with it. ``console`` is a Console."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self._directory = directory
        self._zookeeper = ZooKeeper(directory / "zookeeper")
        self._settings = settings
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._open: list[Any] = []
        self._brokers: dict[int, Broker] = {}

    def __enter__(self) -> Demo:
        self._zookeeper.start()
        self.zookeeper = connect = f"{self._zookeeper.connect}/shop"
        self._brokers = {number: self._broker(number, connect) for number in (*LIVE, DEAD)}
        for broker in self._brokers.values():
            broker.start()
        self.console = Console(
            connect,
            self._directory / "console",
            **{
                "console.read.only": "false",
                "console.audit.file": self._directory / "changes.log",
                "lag.interval.ms": 1000,
                **self._settings,
            },
        ).begin()
        self.url = f"http://127.0.0.1:{self.console.port}"
        self.address = self._brokers[1].address
        self._fill()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(WAIT_S)
        for process in (self.console, *self._brokers.values(), self._zookeeper):
            process.kill()

    def _broker(self, number: int, connect: str) -> Broker:
        port, logins = free_port(), free_port()
        props = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{logins}",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "api.versions.enable": "true",
            "auto.create.topics.enable": "false",
            "authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer",
            "delete.topic.enable": "true",
            "http.port": free_port(),
            "offsets.topic.num.partitions": 3,
            "offsets.topic.replication.factor": 2,
            "super.users": "User:ANONYMOUS",
            "zookeeper.session.timeout.ms": 10000,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 3_600_000,
            **hanging.UNVERIFIED,
        }
        directory = self._directory / f"broker-{number}"
        return Broker("ours", directory, connect, broker_id=number, port=port, props=props)

    def _fill(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        replicas = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
        made = [
            NewTopic(
                name,
                count,
                replica_assignment=[replicas[number % 3] for number in range(count)],
                config=config,
            )
            for name, (count, config) in TOPICS.items()
        ]
        for future in admin.create_topics(made).values():
            future.result(WAIT_S)
        for future in admin.create_acls(_rules()).values():
            future.result(WAIT_S)
        self.console.wait_until_shown("/topics", f"{len(TOPICS)} of")
        self._run(self._produce)
        for group, topic, pause_s in (("billing", "orders", 0.4), ("fraud-check", "payments", 0)):
            self._run(lambda group=group, topic=topic, s=pause_s: self._consume(group, topic, s))
        self._stopped_group()
        self._transactions()
        self._changes()
        self._brokers[DEAD].kill()
        self.console.wait_until_shown("/", "Broker 3")
        for path, text in (("/transactions", "hanging"), ("/group?name=billing", "orders")):
            self.console.wait_until_shown(path, text)

    def _run(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.address, "log_level": 0})
        for number in itertools.count():
            producer.produce("orders", _order(number), f"order-{1000 + number}", headers=_headers())
            producer.produce("payments", _payment(number), f"order-{1000 + number}")
            producer.produce("customers", json.dumps({"name": "Ann"}), f"customer-{number % 500}")
            producer.produce("page-views", f"GET /articles/{number % 97} 200".encode())
            producer.produce(FULL_NAME, json.dumps({"article": number % 97, "in_stock": 12}), "DE")
            producer.poll(0)
            # the beginning is quicker, so that there is something to be behind of
            if number > 1500 and self._stop.wait(0.05):
                break
        producer.flush(5)

    def _consume(self, group: str, topic: str, pause_s: float) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": group,
                "client.id": f"{group}-1",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 1000,
                "log_level": 0,
            }
        )
        consumer.subscribe([topic])
        while not self._stop.is_set():
            consumer.poll(0.5)
            self._stop.wait(pause_s)
        consumer.close()

    def _stopped_group(self) -> None:
        """Ten commits and no more, which the judgement of a group needs."""
        consumer = Consumer(
            {"bootstrap.servers": self.address, "group.id": "search-index", "log_level": 0}
        )
        for offset in range(1, 11):
            places = [TopicPartition("page-views", number, offset) for number in range(4)]
            consumer.commit(offsets=places, asynchronous=False)
            time.sleep(0.2)
        consumer.close()

    def _transactions(self) -> None:
        for name, topic, timeout_ms in (
            ("invoices", "payments", 1000),
            ("stock-import-0_1", FULL_NAME, 600_000),
        ):
            producer = Producer(
                {
                    "bootstrap.servers": self.address,
                    "transactional.id": name,
                    "transaction.timeout.ms": timeout_ms,
                    "log_level": 0,
                }
            )
            producer.init_transactions(WAIT_S)
            producer.begin_transaction()
            producer.produce(topic, json.dumps({"invoice": 77}), partition=0)
            producer.flush(WAIT_S)
            self._open.append(producer)
        leader = self._brokers[1].port  # of partition 0
        hanging.begin(leader, "page-views", "GET / 200", int(time.time() * 1000))

    def _changes(self) -> None:
        """Forms of the console, which are then on its page of changes."""
        console = self.console
        password = {"password": "correct horse", "again": "correct horse"}
        for name in ("ann", "billing-service"):
            console.submit("/users/add", "/users/add", user=name, iterations=4096,
                           mechanism="SCRAM-SHA-256", **password)  # fmt: skip
        for who, rate in (("ann", "10 MiB/s"), ("billing-service", "512 KB/s")):
            console.submit("/quotas/set", "/quotas/set", user_is="named", user=who,
                           producer_byte_rate=rate, request_percentage="50 %")  # fmt: skip
        console.submit("/topics/payments/settings", "/topics/payments/settings",
                       **{"own.retention.ms": "30 days",
                          "own.min.insync.replicas": "1"})  # fmt: skip
        for key in ("a", "b"):
            console.submit("/topics/customers/send", "/topics/customers/send",
                           partition="", key=key, key_as="text", value='{"name": "Bo"}',
                           value_as="text", headers="", acks="1")  # fmt: skip


def pages_of(url: str) -> list[Page]:
    """Those of PAGES, with a transaction to abort."""
    request = urllib.request.Request(f"{url}/transactions", headers={"Accept": "text/html"})
    with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
        found = re.search(r'href="(/transactions/abort[^"]*)"', answer.read().decode())
    assert found is not None
    path = html.unescape(found[1])
    return [page._replace(path=path) if page.name == "abort" else page for page in PAGES]


def _order(number: int) -> bytes:
    articles = [{"id": number * 7 % 97, "pieces": 1 + number % 3, "price": "19.90"}]
    note = "gift, please wrap" if number % 50 == 0 else ""
    return json.dumps(
        {"order": 1000 + number, "customer": number % 500, "articles": articles, "note": note}
    ).encode()


def _payment(number: int) -> bytes:
    return json.dumps({"order": 1000 + number, "amount": "39.80", "currency": "EUR"}).encode()


def _headers() -> list[tuple[str, str | bytes | None]]:
    return [("trace-id", b"4bf92f3577b34da6a3ce929d0e0e4736"), ("source", b"shop")]


def _rules() -> list[AclBinding]:
    topic, group = ResourceType.TOPIC, ResourceType.GROUP
    literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
    allow, deny = AclPermissionType.ALLOW, AclPermissionType.DENY
    read, write = AclOperation.READ, AclOperation.WRITE
    return [
        AclBinding(topic, "orders", literal, "User:ann", "*", read, allow),
        AclBinding(topic, "orders", literal, "User:ann", "*", write, allow),
        AclBinding(topic, "warehouse.", prefixed, "User:billing-service", "10.0.0.7", read, allow),
        AclBinding(group, "billing", literal, "User:billing-service", "*", read, allow),
        AclBinding(topic, "payments", literal, "User:*", "*", write, deny),
    ]


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory() as directory, Demo(Path(directory)) as demo:
        print(demo.url, flush=True)
        wait_until("Ctrl-C", float("inf"), lambda: False)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(0)
