"""The web console and its lag exporter where brokers have only a listener with TLS or logins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from integration.certificates import Authority
from integration.console import Console
from integration.harness import Broker, Process, ZooKeeper, free_port
from integration.sasl import PLAIN_MODULE, USERS, jaas
from integration.wire import wait_until

WAIT_S = 60


def closed(directory: Path, connect: str, authority: Authority, protocol: str) -> Broker:
    """A broker whose only listener has this protocol; SSL needs a certificate of the client."""
    port = free_port()
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    return Broker(
        "ours",
        directory,
        connect,
        port=port,
        props={
            "listeners": f"{protocol}://127.0.0.1:{port}",
            "security.inter.broker.protocol": protocol,
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.jaas.config": f'{PLAIN_MODULE} required username="admin" '
            f'password="{USERS["admin"]}" {users};',
            "ssl.client.auth": "required" if protocol == "SSL" else "none",
            "ssl.keystore.location": authority.issue("broker"),
            "ssl.truststore.location": authority.path,
            "zookeeper.session.timeout.ms": 6000,
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
        },
    )


def logins(authority: Authority, protocol: str) -> dict[str, object]:
    """How the console connects."""
    own: dict[str, object] = {
        "security.protocol": protocol,
        "ssl.truststore.location": authority.path,
    }
    if protocol == "SSL":
        own["ssl.keystore.location"] = authority.issue("console")
    else:
        own["sasl.mechanism"] = "PLAIN"
        own["sasl.jaas.config"] = jaas("alice", USERS["alice"])
    return {f"client.{key}": value for key, value in own.items()}


def consumer(broker: Broker, authority: Authority, protocol: str) -> Any:
    settings = {
        "bootstrap.servers": broker.address,
        "group.id": "readers",
        "security.protocol": protocol,
        "ssl.ca.location": str(authority.path),
    }
    if protocol == "SSL":
        pem = str(authority.issue("reader"))
        own = {"ssl.certificate.location": pem, "ssl.key.location": pem}
    else:
        own = {
            "sasl.mechanism": "PLAIN",
            "sasl.username": "bob",
            "sasl.password": USERS["bob"],
        }
    return Consumer({**settings, **own})


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_the_only_listener_of_a_broker(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None], protocol: str
) -> None:
    """All that needs a broker: states, ends of logs, messages, and offsets of groups in Kafka."""
    connect = f"{zookeeper.connect}/console-{protocol.lower()}"
    authority = Authority(tmp_path / "authority")
    broker = closed(tmp_path / "broker", connect, authority, protocol)
    launch(broker)
    broker.start()
    settings = {"console.read.only": "false", **logins(authority, protocol)}
    console = Console(connect, tmp_path / "console", **settings)
    launch(console)
    console.begin()
    console.wait_until_shown("/", "Brokers up 1 of 1")
    assert console.submit("/create", "/create", name="made", partitions=1, factor=1)[0] == 200
    console.wait_until_shown("/topics/made", "good 0 0 0")
    path = "/topics/made/send"
    for value in ("one", "two", "three"):
        assert console.submit(path, path, partition=0, value=value)[0] == 200
    console.wait_until_shown("/topics/made", "good 0 3 3")
    assert console.ask("/topics/made/raw?partition=0&offset=1&part=value")[1] == "two"
    reader = consumer(broker, authority, protocol)
    try:
        reader.commit(offsets=[TopicPartition("made", 0, 1)], asynchronous=False)
        console.wait_until_shown("/group?name=readers", "made 0 1 3 2")
        series = 'kafka_consumergroup_lag{consumergroup="readers",partition="0",topic="made"} 2.0'
        wait_until("the lag for Prometheus", WAIT_S, lambda: series in console.ask("/metrics")[1])
        form = "/group/reset?name=readers&to=latest"
        assert console.submit(form, "/group/reset")[0] == 200

        def committed() -> int:
            found: int = reader.committed([TopicPartition("made", 0)], timeout=WAIT_S)[0].offset
            return found

        wait_until("the offset that was set", WAIT_S, lambda: committed() == 3)
    finally:
        reader.close()
    assert " ERROR " not in console.log


def test_without_the_settings_it_says_what_is_missing(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    connect = f"{zookeeper.connect}/console-none"
    authority = Authority(tmp_path / "authority")
    broker = closed(tmp_path / "broker", connect, authority, "SSL")
    launch(broker)
    broker.start()
    console = Console(connect, tmp_path / "console")
    launch(console)
    console.begin()
    console.wait_until_shown("/brokers", f"SSL://{broker.address} up")
    console.wait_until_shown("/", "no live broker has a listener of PLAINTEXT (security.protocol)")
