"""The console's judgement of a group beside that of Burrow, which watches the same commits.

Skipped with the reason where Debian's package ``burrow`` is missing.
"""

from __future__ import annotations

import json
import shutil
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.console import Console
from integration.harness import Broker, Process, ZooKeeper, free_port
from integration.test_lag import samples
from integration.wire import entry, wait_until
from kafka08.lag.judgement import OK, REWIND, STALL, STATUSES, STOP, WARN, WINDOW

BURROW = shutil.which("Burrow") or shutil.which("burrow")
pytestmark = pytest.mark.skipif(not BURROW, reason="burrow is not installed (Debian's package)")
BEFORE = 3000
"""Messages of each partition at first; each round adds ADDED."""
ADDED = 10
STORAGES = ("zookeeper", "kafka")
HISTORIES = (OK, WARN, STALL, STOP, REWIND)
"""By partition."""


class Burrow(Process):
    """It asks for the ends of logs each second, and keeps the last ten commits, as the console."""

    def __init__(self, directory: Path, broker: Broker) -> None:
        self.port = free_port()
        directory.mkdir()
        hosts, _, chroot = broker.zookeeper.partition("/")
        (directory / "burrow.toml").write_text(f"""
[general]
pidfile="{directory}/burrow.pid"
[logging]
level="info"
[zookeeper]
servers=["{hosts}"]
timeout=10
root-path="/burrow"
[client-profile.old]
client-id="burrow"
kafka-version="0.8.2"
[cluster.here]
class-name="kafka"
servers=["{broker.address}"]
client-profile="old"
topic-refresh=5
offset-refresh=1
[consumer.kafka]
class-name="kafka"
cluster="here"
servers=["{broker.address}"]
client-profile="old"
offsets-topic="__consumer_offsets"
start-latest=false
[consumer.zookeeper]
class-name="kafka_zk"
cluster="here"
servers=["{hosts}"]
zookeeper-path="/{chroot}"
zookeeper-timeout=30
[storage.default]
class-name="inmemory"
intervals={WINDOW}
min-distance=0
[evaluator.default]
class-name="caching"
expire-cache=1
[httpserver.default]
address="127.0.0.1:{self.port}"
""")
        super().__init__("burrow", [BURROW or "", "--config-dir", str(directory)], directory)

    def judgement(self, group: str) -> dict[int, str]:
        """By partition; those with a full window only."""
        url = f"http://127.0.0.1:{self.port}/v3/kafka/here/consumer/{group}/lag"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                found = json.load(answer)["status"]["partitions"]
        except OSError:
            return {}
        return {each["partition"]: each["status"] for each in found if each["complete"] == 1}


def ours(console: Console, group: str) -> dict[int, str]:
    return {
        int(dict(labels)["partition"]): STATUSES[int(value)]
        for (name, labels), value in samples(console).items()
        if name == "kafka_consumergroup_status" and ("consumergroup", group) in labels
    }


def offset_of(history: str, number: int) -> int | None:
    """The commit of a round; None: nothing is committed."""
    return {
        OK: BEFORE + ADDED * (number + 1),
        WARN: 100 + number,
        STALL: 500,
        STOP: 100 + 5 * number if number < WINDOW else None,
        REWIND: 2000 - number,
    }[history]


@pytest.mark.scenario("ops-25")
def test_both_judge_alike(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    chroot = f"{zookeeper.connect}/beside-burrow"
    props = {"offsets.topic.num.partitions": 1, "offsets.topic.replication.factor": 1}
    broker = Broker("ours", tmp_path / "broker", chroot, props=props)
    launch(broker)
    broker.start().create_topic("read", len(HISTORIES))
    with broker.wire() as wire:
        wait_until("the coordinator", 60, lambda: not wire.coordinator_error("kafka"))
        wait_until("a commit", 60, lambda: not wire.commit("early", "read", 0, 1))
        for partition in range(len(HISTORIES)):
            some = b"".join(entry(None, b"m", at) for at in range(BEFORE))
            wire.produce("read", partition, some)
    burrow, console = Burrow(tmp_path / "burrow", broker), Console(chroot, tmp_path / "console")
    launch(burrow)
    launch(console)
    burrow.spawn()
    console.begin()
    client = zookeeper.client("/beside-burrow")
    more = b"".join(entry(None, b"m", at) for at in range(ADDED))
    wanted = dict(enumerate(HISTORIES))
    found: dict[tuple[str, str], dict[int, str]] = {}
    try:
        for partition in wanted:
            client.ensure_path(f"/consumers/zookeeper/offsets/read/{partition}")
        for number in range(4 * WINDOW):
            with broker.wire() as wire:
                for partition in wanted:
                    wire.produce("read", partition, more)
                time.sleep(1.5)  # both look at the ends of the logs
                for partition, history in wanted.items():
                    offset = offset_of(history, number)
                    if offset is not None:
                        assert wire.commit("kafka", "read", partition, offset) == 0
                        node = f"/consumers/zookeeper/offsets/read/{partition}"
                        client.set(node, b"%d" % offset)
                time.sleep(0.7)
            found = {
                (who, group): judgement
                for group in STORAGES
                for who, judgement in (
                    ("burrow", burrow.judgement(group)),
                    ("console", ours(console, group)),
                )
            }
            if number > WINDOW and all(each == wanted for each in found.values()):
                return
    finally:
        client.stop()
        client.close()
    pytest.fail(f"{wanted} wanted: {found}\n{burrow.log[-3000:]}")
