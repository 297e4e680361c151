"""TLS between brokers that fall out: by a certificate that ends, and by being killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.certificates import Authority
from integration.harness import (
    Broker,
    Process,
    ZooKeeper,
    free_port,
    isr,
    partition_state,
)
from integration.relay import Relay
from integration.wire import entry, wait_until

WAIT_S = 120
BACK_S = 30
SHORT_S = 120  # how long the certificate that ends is good: the start of three brokers, and more
Launch = Callable[[Process], None]


class Secure:
    """A broker whose TLS port others reach through a relay."""

    def __init__(
        self, directory: Path, connect: str, number: int, authority: Authority, good_for_s: float
    ) -> None:
        self.authority = authority
        self.keys = authority.issue(f"broker{number}", good_for_s)
        tls_port, port = free_port(), free_port()
        self.relay = Relay(tls_port)
        self.broker = Broker(
            "ours",
            directory / f"b{number}",
            connect,
            broker_id=number,
            port=port,
            props={
                "listeners": f"PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls_port}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},"
                f"SSL://127.0.0.1:{self.relay.port}",
                "security.inter.broker.protocol": "SSL",
                "ssl.keystore.location": self.keys,
                "ssl.truststore.location": authority.path,
                "ssl.client.auth": "required",
                "replica.lag.time.max.ms": 3000,
                "zookeeper.session.timeout.ms": 6000,
            },
        )


def leader(connect: str, topic: str, partition: int) -> int:
    return int(partition_state(connect, topic, partition).get("leader", -1))


@pytest.fixture
def three(zookeeper: ZooKeeper, tmp_path: Path, launch: Launch) -> Iterator[list[Secure]]:
    """The certificate of broker 2 ends ``SHORT_S`` after it was issued."""
    connect, authority = f"{zookeeper.connect}/expiry", Authority(tmp_path / "authority")
    found = []
    for number in range(3):
        good_for_s = SHORT_S if number == 2 else 86400
        each = Secure(tmp_path, connect, number, authority, good_for_s)
        found.append(each)
        launch(each.broker)
        each.broker.start()
    yield found
    for each in found:
        each.relay.close()


@pytest.mark.scenario("security-7")
@pytest.mark.slow
def test_7_a_certificate_that_ends_takes_one_broker_out(three: list[Secure]) -> None:
    issued = three[2].keys.stat().st_mtime
    brokers = [each.broker for each in three]
    connect = brokers[0].zookeeper
    brokers[0].create_topic("t", replicas=[0, 1, 2])
    wait_until("all in sync", WAIT_S, lambda: isr(connect, "t") == [0, 1, 2])
    with brokers[0].wire() as wire:
        wire.produce("t", 0, entry(None, b"before"), -1)
        time.sleep(max(0.0, issued + SHORT_S + 2 - time.time()))
        assert isr(connect, "t") == [0, 1, 2], "connections outlive certificates"
        for each in three:
            each.relay.cut()
        wait_until("broker 2 is out", WAIT_S, lambda: isr(connect, "t") == [0, 1])
        wire.produce("t", 0, entry(None, b"without 2"), -1)
        told = [line for line in brokers[2].log.splitlines() if "CERTIFICATE_EXPIRED" in line]
        assert any("WARN Error in fetch from broker id:0," in line for line in told), told[-3:]
        refusal = "Failed authentication with /127.0.0.1 (SSL handshake failed: certificate has"
        assert refusal in brokers[0].log + brokers[1].log
        began = time.monotonic()
        three[2].authority.issue("broker2")
        wait_until("broker 2 is back", WAIT_S, lambda: isr(connect, "t") == [0, 1, 2])
        took = time.monotonic() - began
        print(f"back {took:.1f} s after the new certificate")
        assert took < BACK_S
        wire.produce("t", 0, entry(None, b"after"), -1)
    assert all(each.broker.alive for each in three)


@pytest.mark.scenario("security-3")
@pytest.mark.original
@pytest.mark.slow
def test_3_leaders_are_killed_on_either_side(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Launch
) -> None:
    """One broker has listeners, the other is of 0.8.2.2; what all replicas have stays."""
    connect = f"{zookeeper.connect}/killed"
    authority = Authority(tmp_path / "authority")
    keys, tls_port, port = authority.issue("broker0"), free_port(), free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{tls_port}"
    props = {"listeners": listeners, "ssl.keystore.location": keys}
    ours = Broker("ours", tmp_path / "ours", connect, broker_id=0, port=port, props=props)
    original = Broker("original", tmp_path / "original", connect, broker_id=1)
    for broker in (ours, original):
        launch(broker)
        broker.start()
    client = zookeeper.client("/killed")
    client.create(
        "/brokers/topics/t", b'{"version":1,"partitions":{"0":[0,1],"1":[1,0]}}', makepath=True
    )
    client.stop()
    client.close()
    wait_until("both in sync", WAIT_S, lambda: isr(connect, "t") == isr(connect, "t", 1) == [0, 1])
    brokers = (ours, original)

    def produce(count: int, first: int) -> None:
        for partition in (0, 1):
            for number in range(first, first + count):
                wait_until(f"message {number}", WAIT_S, lambda p=partition, n=number: send(p, n))

    def send(partition: int, number: int) -> bool:
        with brokers[leader(connect, "t", partition)].wire() as wire:
            wire.produce("t", partition, entry(None, b"%d" % number), -1)
        return True

    def led_by(broker: Broker) -> bool:
        return all(leader(connect, "t", p) == broker.broker_id for p in (0, 1))

    sent = 0
    for dead in (ours, original, ours, original):
        alive = original if dead is ours else ours
        produce(10, sent)
        dead.kill()
        wait_until(f"broker {alive.broker_id} leads", WAIT_S, lambda b=alive: led_by(b))
        produce(10, sent + 10)
        sent += 20
        dead.start()
        wait_until(
            "both in sync", WAIT_S, lambda: isr(connect, "t") == isr(connect, "t", 1) == [0, 1]
        )
    for partition in (0, 1):
        with brokers[leader(connect, "t", partition)].wire() as wire:
            found = {each.value for each in wire.read_all("t", partition)}
        assert found == {b"%d" % number for number in range(sent)}
