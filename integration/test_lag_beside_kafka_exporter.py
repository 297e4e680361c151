"""The console's series of topics and of a group in ZooKeeper beside those of kafka_exporter.

Skipped with the reason where no ``kafka_exporter`` is on PATH. With a ``--kafka.version`` of 0.8 it
logs that it cannot ask brokers for their groups, and goes on with those in ZooKeeper.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.conftest import BOTH
from integration.console import Console
from integration.harness import Broker, Process, Tools, ZooKeeper, free_port
from integration.scrape import Samples, scrape
from integration.wire import entry, wait_until

EXPORTER = shutil.which("kafka_exporter")
pytestmark = pytest.mark.skipif(not EXPORTER, reason="kafka_exporter is not on PATH")
GROUP = "stopped"
THEIR_LAG, OUR_LAG = "kafka_consumergroupzookeeper_lag_zookeeper", "kafka_consumergroup_lag"
"""Theirs is that of groups in ZooKeeper alone. Ours has the name of all other groups."""
OF_TOPICS = {
    "kafka_brokers",
    "kafka_topic_partitions",
    *(
        f"kafka_topic_partition_{name}"
        for name in (
            "current_offset",
            "oldest_offset",
            "leader",
            "replicas",
            "in_sync_replica",
            "leader_is_preferred",
            "under_replicated_partition",
        )
    ),
}


class Exporter(Process):
    """It looks for groups at the root of ZooKeeper, whatever chroot brokers have."""

    def __init__(self, directory: Path, broker: Broker) -> None:
        self.port = free_port()
        command = [
            EXPORTER or "",
            f"--kafka.server={broker.address}",
            "--kafka.version=0.8.2.2",
            "--use.consumelag.zookeeper",
            f"--zookeeper.server={broker.zookeeper}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--refresh.metadata=1s",
        ]
        super().__init__("kafka_exporter", command, directory)


def of_topics(found: Samples) -> Samples:
    return {key: value for key, value in found.items() if key[0] in OF_TOPICS}


def lags(found: Samples, name: str) -> dict[tuple[str, str, str], float]:
    """By group, topic and partition."""
    kept = [(dict(labels), value) for (each, labels), value in found.items() if each == name]
    return {
        (labels["consumergroup"], labels["topic"], labels["partition"]): value
        for labels, value in kept
    }


@pytest.fixture
def root(tmp_path: Path) -> Iterator[ZooKeeper]:
    """A ZooKeeper of its own, for a cluster without a chroot."""
    server = ZooKeeper(tmp_path / "zookeeper").start()
    yield server
    server.kill()


@pytest.mark.scenario("ops-21")
@pytest.mark.parametrize("kind", BOTH)
def test_a_group_in_zookeeper_that_stopped_at_40_of_100(
    root: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None], kind: str
) -> None:
    broker = Broker(kind, tmp_path / "broker", root.connect)
    launch(broker)
    broker.start().create_topic("read", 2)
    with broker.wire() as wire:
        wire.produce("read", 0, b"".join(entry(None, b"m", at) for at in range(100)))
    done = Tools("ours", tmp_path / "tools").run(
        "kafka.tools.ConsoleConsumer", "--zookeeper", root.connect, "--topic", "read",
        "--from-beginning", "--max-messages", "40", "--group", GROUP, timeout=120,
    )  # fmt: skip
    assert len(done.lines) == 40, done.err
    exporter = Exporter(tmp_path / "exporter", broker)
    console = Console(root.connect, tmp_path / "console")
    launch(exporter)
    launch(console)
    exporter.spawn()
    console.begin()
    stopped = {(GROUP, "read", "0"): 60.0}
    # It leaves out a group's partitions with offset 0.
    read_nothing = {(GROUP, "read", "1"): 0.0}

    def both_show_it() -> bool:
        theirs, ours = scrape(exporter.port), scrape(console.port)
        agree = of_topics(theirs) == of_topics(ours) != {}
        their_lags, our_lags = lags(theirs, THEIR_LAG), lags(ours, OUR_LAG)
        return agree and their_lags == stopped and our_lags == stopped | read_nothing

    try:
        wait_until("the same series of both", 60, both_show_it)
    except TimeoutError:
        theirs, ours = scrape(exporter.port), scrape(console.port)
        differ = sorted(set(of_topics(theirs).items()) ^ set(of_topics(ours).items()), key=str)
        lag = lags(theirs, THEIR_LAG), lags(ours, OUR_LAG)
        pytest.fail(f"{differ}\n{lag}\n{exporter.log[-3000:]}")
    current = lags(scrape(console.port), "kafka_consumergroup_current_offset")
    assert current == {(GROUP, "read", "0"): 40.0, (GROUP, "read", "1"): 0.0}
    assert {name for name, _ in of_topics(scrape(exporter.port))} == OF_TOPICS
