"""The lag of groups that the console shows, over real brokers, consumers of 0.8.2.2 and Burrow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from integration import scrape
from integration.console import Console
from integration.harness import Broker, Process, Tools, ZooKeeper, free_port, properties
from integration.scrape import Samples
from integration.test_metrics import REQUESTS, Watched
from integration.wire import entry, wait_until

GROUPS, PARTITIONS = 500, 10


def samples(console: Console) -> Samples:
    """None before the first round."""
    status, text = console.ask("/metrics")
    return scrape.samples(text if status == 200 else "")


def shows(console: Console, group: str, offset: float) -> Callable[[], bool]:
    """Whether a group is there, in partition 0 of a topic with 100 messages."""
    labels = frozenset({("consumergroup", group), ("topic", "read"), ("partition", "0")})

    def it_does() -> bool:
        found = samples(console)
        return (
            found.get(("kafka_consumergroup_current_offset", labels)) == offset
            and found.get(("kafka_consumergroup_lag", labels)) == 100 - offset
        )

    return it_does


@pytest.mark.scenario("ops-22")
@pytest.mark.original
@pytest.mark.parametrize("dual", ["true", "false"])
def test_a_scala_consumer_that_stopped_at_40_of_100(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None], dual: str
) -> None:
    """With offsets in Kafka; if it also commits to ZooKeeper, the larger offset counts."""
    chroot = f"{zookeeper.connect}/lag-{dual}"
    props = {"offsets.topic.num.partitions": 1, "offsets.topic.replication.factor": 1}
    broker = Broker("ours", tmp_path / "broker", chroot, props=props)
    launch(broker)
    broker.start().create_topic("read")
    with broker.wire() as wire:
        wire.produce("read", 0, b"".join(entry(None, b"m", at) for at in range(100)))
    config = tmp_path / "consumer.properties"
    config.write_text(
        properties({"group.id": "scala", "offsets.storage": "kafka", "dual.commit.enabled": dual})
    )
    done = Tools("original", tmp_path / "tools").run(
        "kafka.tools.ConsoleConsumer", "--zookeeper", chroot, "--topic", "read",
        "--from-beginning", "--max-messages", "40", "--consumer.config", str(config), timeout=300,
    )  # fmt: skip
    assert len(done.lines) == 40, done.err
    console = Console(chroot, tmp_path / "console")
    launch(console)
    console.begin()
    wait_until("the lag", 60, shows(console, "scala", 40))
    client = zookeeper.client(f"/lag-{dual}")
    node = "/consumers/scala/offsets/read/0"
    try:
        assert (client.exists(node) is not None) == (dual == "true")
        if dual == "true":
            assert client.get(node)[0] == b"40"
            for offset, counts in ((b"70", 70), (b"10", 40)):
                client.set(node, offset)
                wait_until("the larger offset", 60, shows(console, "scala", counts))
    finally:
        client.stop()
        client.close()
    of_group = {("consumergroup", "scala"), ("topic", "read"), ("partition", "0")}
    lags = [name for name, labels in samples(console) if of_group <= labels]
    assert lags.count("kafka_consumergroup_lag") == 1


@pytest.mark.scenario("ops-26")
def test_500_groups_take_one_request_for_the_ends_of_all_logs(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """The console makes a single round here: the first one also asks where logs begin, and after
    the lag each round asks where readers of committed transactions end."""
    chroot, port = f"{zookeeper.connect}/many-groups", free_port()
    broker = Broker("ours", tmp_path / "broker", chroot, props={"http.port": port})
    launch(broker)
    watched = Watched(broker.start(), port)
    broker.create_topic("t", PARTITIONS)
    client = zookeeper.client("/many-groups")
    try:
        for group in range(GROUPS):
            created = client.transaction()
            client.ensure_path(f"/consumers/g{group}/offsets/t")
            for partition in range(PARTITIONS):
                created.create(f"/consumers/g{group}/offsets/t/{partition}", b"0")
            created.commit()
    finally:
        client.stop()
        client.close()
    asked = watched.value(REQUESTS + "requests_total", request="Offsets")
    console = Console(chroot, tmp_path / "console", **{"lag.interval.ms": 3_600_000})
    launch(console)
    console.begin()

    def lags() -> int:
        return sum(name == "kafka_consumergroup_lag" for name, _ in samples(console))

    wait_until("all groups", 120, lambda: lags() == GROUPS * PARTITIONS)
    for_lag = watched.value(REQUESTS + "requests_total", request="Offsets") - asked
    assert for_lag in (2, 3)
