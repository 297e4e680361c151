"""A data directory with open transactions that changes hands between this broker and Kafka 3.9.1,
whose producers go on at the same address. Kafka with its own directory comes first."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration import modern
from integration.harness import Broker, Process, Tools, ZooKeeper, zookeeper_text
from integration.modern import ModernBroker
from integration.test_transactions import WAIT_S, consumer, producer, read, same
from integration.wire import wait_until

TOPIC, GROUP = "taken", "readers"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
SILENT_MS = 45_000  # longer than what follows its beginning takes on a busy machine
SETTLED, PENDING, MOVED = 5, 9, 12  # offsets of the group
ROUNDS = 8
MANY_SEGMENTS = {"segment.bytes": "400", "min.compaction.lag.ms": "0"}
OURS = {
    "api.versions.enable": "true",
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
}
TIMED_OUT = {
    "modern": "rollback of ongoing transaction for transactionalId silent due to timeout",
    "ours": "Aborting the transaction of silent after its timeout",
}
# A controller's connections that are refused while its broker starts or ends.
CONNECTIONS = ("(kafka.controller.RequestSendThread)", "(org.apache.kafka.clients.NetworkClient)")


class Hands:
    """One directory, port and ZooKeeper, of a broker of either kind."""

    def __init__(self, directory: Path, chroot: str, launch: Callable[[Process], None]) -> None:
        self.chroot = chroot
        theirs = ModernBroker(directory / "modern", chroot)
        ours = Broker(
            "ours", directory / "ours", chroot, port=theirs.port, log_dir=theirs.log_dir, props=OURS
        )
        self.kinds: dict[str, Any] = {"modern": theirs, "ours": ours}
        self.log_dir, self.address = theirs.log_dir, theirs.address
        for each in (theirs, ours):
            launch(each)

    def start(self, kind: str) -> Process:
        wait_until("the end of the other", 60, self._is_gone)
        broker = self.kinds[kind].start()
        assert isinstance(broker, Process)
        return broker

    def _is_gone(self) -> bool:
        return zookeeper_text(self.chroot, "/brokers/ids/0") is None


class Scene:
    """The work of producers, and what readers are to see of it, by partition."""

    def __init__(self, address: str, tools: Tools) -> None:
        self.address = address
        self._tools = tools
        self.steady = producer(address, "steady")
        self.open = producer(address, "open", transaction_timeout_ms=600_000)
        self.silent = producer(address, "silent", transaction_timeout_ms=SILENT_MS)
        self.plain = self._idempotent()
        self.committed: dict[int, list[str]] = same()
        self.everything: dict[int, list[str]] = same()

    def _idempotent(self) -> Any:
        from confluent_kafka import Producer

        return Producer(
            {"bootstrap.servers": self.address, "enable.idempotence": True, "log_level": 0}
        )

    def write(self, made: Any, value: str, *, committed: bool) -> None:
        """To each partition."""
        for number in range(3):
            made.produce(TOPIC, value, partition=number)
            self.everything[number].append(value)
            if committed:
                self.committed[number].append(value)
        assert made.flush(WAIT_S) == 0

    def rounds(self, name: str) -> None:
        """Of each kind of end, and messages without any between."""
        for number in range(ROUNDS):
            commits = number % 2 == 0
            self.steady.begin_transaction()
            self.write(self.steady, f"{name} {number}", committed=commits)
            if commits:
                self.steady.commit_transaction(WAIT_S)
            else:
                self.steady.abort_transaction(WAIT_S)
            self.write(self.plain, f"plain {name} {number}", committed=True)

    def settle_offset(self) -> None:
        self.steady.begin_transaction()
        self._send_offset(self.steady, SETTLED)
        self.steady.commit_transaction(WAIT_S)

    def _send_offset(self, made: Any, offset: int) -> None:
        from confluent_kafka import TopicPartition

        reader = consumer(self.address, group=GROUP)
        members = reader.consumer_group_metadata()
        made.send_offsets_to_transaction([TopicPartition(TOPIC, 0, offset)], members, WAIT_S)
        reader.close()

    def begin(self) -> None:
        """Two transactions that stay open, and messages behind them."""
        self.open.begin_transaction()
        self.write(self.open, "open", committed=False)
        self._send_offset(self.open, PENDING)
        self.write(self.plain, "behind", committed=False)
        self.silent.begin_transaction()
        self.write(self.silent, "silent", committed=False)

    def check(self) -> None:
        assert read(self.address, TOPIC) == self.committed
        assert read(self.address, TOPIC, committed=False) == self.everything

    def offset(self, *, stable: bool = False) -> int:
        """The group's, as one sees it who does not wait for ``stable`` ones."""
        from confluent_kafka import TopicPartition

        reader = consumer(self.address, committed=stable, group=GROUP)
        found = reader.committed([TopicPartition(TOPIC, 0)], WAIT_S)[0].offset
        reader.close()
        return int(found)

    def producers(self) -> list[list[str]]:
        """Rows of kafka-transactions for each partition."""
        found = []
        for number in range(3):
            words = ("describe-producers", "--topic", TOPIC, "--partition", str(number))
            where = ("--bootstrap-server", self.address)
            done = self._tools.run(TRANSACTIONS, *where, *words)
            assert done.code == 0, done.err
            found.append(sorted(done.lines))
        return found

    def end(self) -> None:
        """Commit what was opened at the former broker, and more."""
        self.write(self.open, "still open", committed=False)
        self.open.commit_transaction(WAIT_S)


def indexes(log_dir: Path) -> dict[str, bytes]:
    """The aborted transactions by file. Those without any have a file or not."""
    paths = log_dir.glob(f"{TOPIC}-*/*.txnindex")
    found = {f"{path.parent.name}/{path.name}": path.read_bytes() for path in paths}
    return {name: data for name, data in found.items() if data}


def complaints(kind: str, log: str) -> list[str]:
    lines = re.findall(r"^.* (?:WARN|ERROR|FATAL) .*$", log, re.MULTILINE)
    if kind == "ours":
        return [line for line in lines if " WARN " not in line]
    return [line for line in lines if not line.endswith(CONNECTIONS)]


def loaded(kind: str) -> str:
    """The line that Kafka logs when it takes a partition's producers from a snapshot."""
    return f"partition={TOPIC}-0] Loading producer state from snapshot" if kind == "modern" else ""


def make_topic(address: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    topic = NewTopic(TOPIC, 3, 1, config=MANY_SEGMENTS)
    admin.create_topics([topic])[TOPIC].result(WAIT_S)
    wait_until("leaders", WAIT_S, lambda: read(address, TOPIC) == same())


@pytest.mark.scenario("transactions-27", "transactions-28")
@pytest.mark.slow
@pytest.mark.parametrize("ends", ["stop", "kill"])
@pytest.mark.parametrize(
    ("first", "then"), [("modern", "modern"), ("modern", "ours"), ("ours", "modern")]
)
def test_open_transactions_change_hands(
    zookeeper: ZooKeeper,
    tmp_path: Path,
    our_tools: Tools,
    launch: Callable[[Process], None],
    first: str,
    then: str,
    ends: str,
) -> None:
    if reason := modern.missing():
        pytest.skip(reason)
    hands = Hands(tmp_path, f"{zookeeper.connect}/hands-{first}-{then}-{ends}", launch)
    broker = hands.start(first)
    make_topic(hands.address)
    scene = Scene(hands.address, our_tools)
    scene.rounds("first")
    scene.settle_offset()
    wait_until("the markers", WAIT_S, lambda: read(hands.address, TOPIC) == scene.committed)
    scene.begin()
    scene.check()
    assert scene.offset() == SETTLED
    known, aborted = scene.producers(), indexes(hands.log_dir)
    assert len(aborted) > 3 * ROUNDS // 4  # in many segments
    getattr(broker, ends)()

    broker = hands.start(then)
    wait_until("a leader", WAIT_S, lambda: read(hands.address, TOPIC) == scene.committed)
    scene.check()
    assert scene.offset() == SETTLED
    assert indexes(hands.log_dir) == aborted
    assert scene.producers() == known
    scene.end()
    for number in range(3):
        scene.committed[number] += ["open", "behind"]
    wait_until("the timeout", 2 * WAIT_S, lambda: TIMED_OUT[then] in broker.log)
    for number in range(3):
        scene.committed[number].append("still open")
    wait_until("the end of both", WAIT_S, lambda: read(hands.address, TOPIC) == scene.committed)
    wait_until("the offset", WAIT_S, lambda: scene.offset(stable=True) == PENDING)
    scene.rounds("second")
    wait_until("the markers", WAIT_S, lambda: read(hands.address, TOPIC) == scene.committed)
    scene.check()
    known, aborted = scene.producers(), indexes(hands.log_dir)
    if ends == "stop":
        assert loaded(then) in broker.log
    assert not complaints(then, broker.log)
    getattr(broker, ends)()

    back = hands.start(first)
    wait_until("a leader", WAIT_S, lambda: read(hands.address, TOPIC) == scene.committed)
    scene.check()
    assert scene.offset(stable=True) == PENDING
    assert indexes(hands.log_dir) == aborted
    assert scene.producers() == known
    scene.rounds("third")
    wait_until("the markers", WAIT_S, lambda: read(hands.address, TOPIC) == scene.committed)
    if ends == "stop":
        assert loaded(first) in back.log
    assert not complaints(first, back.log)
    back.stop()
