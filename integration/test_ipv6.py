"""A cluster of both kinds of brokers on the IPv6 loopback, used by the tools of both kinds."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.harness import Broker, Process, Tools, ZooKeeper, zookeeper_text
from integration.wire import wait_until

PRODUCER = "kafka.tools.ConsoleProducer"
CONSUMER = "kafka.tools.ConsoleConsumer"
TOPICS = "kafka.admin.TopicCommand"


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


pytestmark = [
    pytest.mark.original,
    pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6 loopback"),
]


def test_brokers_and_tools_on_ipv6(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    chroot = f"{zookeeper.connect}/ipv6"
    brokers = []
    for number, kind in enumerate(["ours", "original"]):
        props = {"host.name": "::1"}
        broker = Broker(kind, tmp_path / kind, chroot, broker_id=number, props=props)
        launch(broker)
        broker.start()
        brokers.append(broker)
        registered = json.loads(zookeeper_text(chroot, f"/brokers/ids/{number}") or "{}")
        assert (registered["host"], registered["port"]) == ("::1", broker.port)

    both = [Tools(kind, tmp_path / f"tools-{kind}") for kind in ("ours", "original")]
    create = [TOPICS, "--zookeeper", chroot, "--create", "--topic", "six"]
    made = both[0].run(*create, "--replica-assignment", "0:1,1:0")
    assert made.code == 0, made
    state = "/brokers/topics/six/partitions/{}/state"
    for partition in range(2):
        wait_until(
            "an isr of both",
            30,
            lambda p=partition: (
                sorted(json.loads(zookeeper_text(chroot, state.format(p)) or "{}").get("isr", []))
                == [0, 1]
            ),
        )

    sent = []
    for tools in both:
        for broker in brokers:
            # Without a key one run of the producer goes to one partition: keys reach both.
            values = [f"{tools.kind}-{broker.kind}-{number}" for number in range(6)]
            produce = ["--broker-list", f"[::1]:{broker.port}", "--topic", "six"]
            done = tools.run(
                *(PRODUCER, *produce, "--request-required-acks", "-1"),
                *("--property", "parse.key=true", "--property", "key.separator=:"),
                stdin="".join(f"{key}:{value}\n" for key, value in enumerate(values)),
            )
            assert done.code == 0, done
            sent += values
    for tools in both:
        consume = ["--zookeeper", chroot, "--topic", "six", "--from-beginning"]
        found = tools.run(CONSUMER, *consume, "--max-messages", str(len(sent)))
        assert sorted(found.lines) == sorted(sent), found
