"""Clients of today while the leaders of their partitions die, or are alone in what they believe."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import TypeVar

import pytest

from integration.cluster.cluster import Cluster, eventually
from integration.cluster.conftest import Clusters
from integration.later import programs
from integration.later.child import Child
from integration.later.member import Member, await_members
from integration.later.sender import Sender
from integration.wire import Wire
from kafka08.message.scan import iter_entries

JAVA = f"java-{programs.JAVA[-1]}"
FRANZ = "franz-go"
TWO = {"min.insync.replicas": 2}
SAFE = {"api.versions.enable": "true", "unclean.leader.election.enable": "false"}
# kafka-python writes a format if it is told that the brokers are of these releases.
VERSIONS = {0: (0, 8, 2), 1: (0, 10, 0)}
OFFSETS = "__consumer_offsets"
TIMED_OUT, NOT_COORDINATOR = 7, 16
C = TypeVar("C", bound=Child)


class Begin:
    """Starts clients, which do not outlive the test."""

    def __init__(self) -> None:
        self.started: list[Child] = []

    def __call__(self, kind: type[C], client: str, cluster: Cluster, *args: str) -> C:
        if reason := programs.missing(client):
            pytest.skip(reason)
        child = kind(client, addresses(cluster), *args)
        self.started.append(child)
        return child


@pytest.fixture(scope="module", autouse=True)
def _made() -> None:
    """The clients are made before a test is in a network where nothing can be fetched."""
    for client in (JAVA, FRANZ):
        programs.missing(client)


@pytest.fixture
def begin() -> Iterator[Begin]:
    found = Begin()
    yield found
    for each in found.started:
        each.kill()


def addresses(cluster: Cluster) -> str:
    return ",".join(f"{each.host.address}:{each.port}" for each in cluster.brokers.values())


@pytest.mark.scenario("modern-14")
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_14_the_leader_dies_under_a_producer_without_ids(
    clusters: Clusters, acks: str, begin: Begin
) -> None:
    """Messages that were committed stay, and so do those that the new leader takes. With acks=all
    each acknowledged one is there; with acks=0 none fails."""
    cluster = clusters.get("ours", props=SAFE)
    topic = cluster.new_topic([1, 2, 3], config=TWO)
    # One request at a time: it may be sent again, but never behind the next.
    settings = ("enable.idempotence=false", "max.in.flight.requests.per.connection=1")
    sender = begin(Sender, JAVA, cluster, topic, f"acks={acks}", *settings)
    values = (b"%d" % number for number in itertools.count())
    for value in itertools.islice(values, 300):
        sender.send(value)
    committed = list(sender.values)
    eventually("what was committed", lambda: cluster.read(topic) == committed)
    for value in itertools.islice(values, 300):
        sender.send(value)
    cluster.kill(1)
    cluster.await_leader(topic, 2)

    def goes_on() -> bool:
        sender.send(next(values))
        return sender.values[-1] in cluster.read(topic)

    eventually("the producer goes on", goes_on)
    sender.close()
    ends = sender.ends
    assert sorted(each.number for each in ends) == list(range(len(sender.values)))
    assert [each for each in ends if each.error] == []
    cluster.brokers[1].start()
    cluster.await_isr(topic, {1, 2, 3})
    eventually("all that is stored", lambda: set(cluster.read(topic)) >= set(sender.values[-1:]))
    found = cluster.read(topic)
    assert found[: len(committed)] == committed
    numbers = list(dict.fromkeys(map(int, found)))  # what is sent again may be there again
    assert numbers == sorted(numbers), "a message before one that was sent earlier"
    if acks == "0":
        assert {each.offset for each in ends} == {-1}
        assert len(found) == len(set(found))
    else:
        # The last that was acknowledged for an offset: the old leader may have given it before.
        told = {each.offset: sender.values[each.number] for each in ends}
        assert {offset: found[offset] for offset in told} == told
    if acks == "all":
        assert len({each.offset for each in ends}) == len(sender.values)
    cluster.await_identical(topic)


class OfFormat:
    """A producer of messages of format 0 or 1, of which each is sent until it is acknowledged."""

    def __init__(self, cluster: Cluster, topic: str, form: int) -> None:
        from kafka import KafkaProducer

        self.acknowledged: list[bytes] = []
        self._topic, self._form = topic, form
        self._producer = KafkaProducer(
            bootstrap_servers=addresses(cluster).split(","),
            api_version=VERSIONS[form],
            acks="all",
            retries=1_000_000,
            max_in_flight_requests_per_connection=1,
            reconnect_backoff_max_ms=500,
            linger_ms=2,
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for number in itertools.count():
            if self._stopping.wait(0.005):
                break
            value = b"format %d: %d" % (self._form, number)
            sent = self._producer.send(self._topic, value, partition=0)
            sent.add_callback(lambda _, stored=value: self.acknowledged.append(stored))
        self._producer.close(60)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


@pytest.mark.scenario("modern-52")
@pytest.mark.slow
def test_52_leaders_die_in_turn_under_all_formats(clusters: Clusters, begin: Begin) -> None:
    cluster = clusters.get("ours", props=SAFE)
    topic = cluster.new_topic([1, 2, 3], config=TWO)
    sender = begin(Sender, FRANZ, cluster, topic)
    others = [OfFormat(cluster, topic, form) for form in VERSIONS]
    killed = []
    try:
        for _ in range(3):
            ended = [len(sender.lines), *(len(each.acknowledged) for each in others)]

            def all_go_on(since: list[int] = ended) -> bool:
                for _ in range(20):
                    sender.send(b"format 2: %d" % len(sender.values))
                now = [len(sender.lines), *(len(each.acknowledged) for each in others)]
                return all(new > old + 50 for new, old in zip(now, since, strict=True))

            eventually("all producers go on", all_go_on)
            leader = cluster.leader(topic)
            cluster.kill(leader)
            killed.append(leader)
            cluster.await_state(topic, lambda s, old=leader: s.leader not in (-1, old))
            eventually("all producers go on", all_go_on)
            cluster.brokers[leader].start()
            cluster.await_isr(topic, {1, 2, 3})
    finally:
        for each in others:
            each.stop()
    sender.close()
    assert len(set(killed)) > 1
    log = cluster.await_identical(topic)
    assert {log[each.position + 16] for each in iter_entries(memoryview(log))} == {0, 1, 2}
    found = cluster.read(topic)
    assert [each for each in sender.ends if each.error] == []
    assert [value for value in found if value.startswith(b"format 2")] == sender.values
    for each in sender.ends:
        assert found[each.offset] == sender.values[each.number]
    for each in others:
        assert set(each.acknowledged) <= set(found)


def test_two_coordinators_after_a_split(clusters: Clusters, cuts: None, begin: Begin) -> None:
    """The old one answers what it knows, but takes no commit: its followers have left it."""
    props = {**SAFE, "offsets.topic.num.partitions": 1}
    cluster = clusters.get("ours", props=props)
    topic = cluster.new_topic([2, 3])
    cluster.new_topic([1, 2, 3], name=OFFSETS)

    def wire(broker_id: int) -> Wire:
        broker = cluster.brokers[broker_id]
        return Wire(broker.port, broker.host.address)

    def committed(broker_id: int, group: str) -> tuple[int, int]:
        with wire(broker_id) as connection:
            return connection.committed(group, topic, 0)

    member = begin(Member, JAVA, cluster, "group", topic)
    cluster.put_records(topic, 10)
    await_members("messages", 60, lambda: len(member.messages) == 10, member)
    eventually("its commit", lambda: committed(1, "group") == (10, 0))

    cluster.cut(1, "zookeeper")
    cluster.await_leader(OFFSETS, 2)
    assert committed(1, "group") == (10, 0), "it believes that it coordinates"
    with wire(1) as connection:
        assert connection.commit("another", topic, 0, 5) == TIMED_OUT
    assert committed(1, "another")[0] == committed(2, "another")[0] == -1
    cluster.put_records(topic, 10)
    eventually("a commit at the new one", lambda: committed(2, "group") == (20, 0))
    assert committed(1, "group") == (10, 0)

    cluster.hosts.heal()
    cluster.await_isr(OFFSETS, {1, 2, 3})
    assert committed(1, "group")[1] == NOT_COORDINATOR
    cluster.await_identical(OFFSETS)
    assert committed(2, "another")[0] == -1
    member.close()
    assert member.messages == [(0, n) for n in range(20)]
