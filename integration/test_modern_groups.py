"""Groups of today's clients at a real broker: members come, close, are killed, and differ."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient

from integration.harness import Broker, Tools, ZooKeeper, zookeeper_text
from integration.later import programs
from integration.later.member import Member, await_members
from integration.later.programs import CLIENTS, JAVA
from integration.wire import wait_until

NEWEST_JAVA = f"java-{JAVA[-1]}"
COUNT = 20
WAIT_S = 60.0
SESSION_S = 6.0  # of each program's members
REPLICATED = {
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 3,
    "unclean.leader.election.enable": "false",
}
Join = Callable[..., Member]


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def join(modern_broker: Broker) -> Iterator[Join]:
    """Starts members, which do not outlive the test."""
    members: list[Member] = []

    def start(client: str, group: str, topic: str, *config: str, at: str = "") -> Member:
        reason = programs.missing(client)
        if reason:
            pytest.skip(reason)
        members.append(Member(client, at or modern_broker.address, group, topic, *config))
        return members[-1]

    yield start
    for member in members:
        member.kill()


def write(broker: Broker, topic: str, count: int = COUNT) -> None:
    programs.run("confluent-kafka", "write", broker.address, topic, "none", count, "false")


def state(broker: Broker, group: str) -> ConsumerGroupState:
    admin = AdminClient({"bootstrap.servers": broker.address})
    return admin.describe_consumer_groups([group])[group].result(WAIT_S).state


def share(what: str, timeout: float, partitions: int, *members: Member) -> None:
    """Until each partition has one owner, and the members have as many as they should."""

    def shared() -> bool:
        owned = [each.assigned for each in members]
        sizes = sorted(map(len, owned))
        return set().union(*owned) == set(range(partitions)) and sizes[-1] - sizes[0] <= (
            1 if partitions % len(members) else 0
        )

    await_members(what, timeout, shared, *members)


@pytest.mark.scenario("modern-32")
@pytest.mark.parametrize("client", CLIENTS)
def test_members_share_partitions_and_offsets(
    client: str, modern_broker: Broker, join: Join
) -> None:
    topic, group = unique("shared"), unique("group")
    modern_broker.create_topic(topic, 2)
    first = join(client, group, topic)
    write(modern_broker, topic)
    share("alone", WAIT_S, 2, first)
    expected = [(0, n) for n in range(COUNT)]
    await_members("messages", WAIT_S, lambda: first.messages == expected, first)

    second = join(client, group, topic)
    share("two members", WAIT_S, 2, first, second)
    first.close()
    share("one has left", SESSION_S, 2, second)
    second.close()
    assert state(modern_broker, group) is ConsumerGroupState.EMPTY

    third = join(client, group, topic)
    share("a later member", WAIT_S, 2, third)
    write(modern_broker, topic, 1)
    await_members("the next message", WAIT_S, lambda: third.messages, third)
    third.close()
    read = [place for each in (first, second, third) for place in each.messages]
    assert read == [(0, n) for n in range(COUNT + 1)]


@pytest.mark.scenario("modern-31")
def test_31_members_of_different_clients_of_which_one_is_killed(
    modern_broker: Broker, join: Join
) -> None:
    topic, group = unique("mixed"), unique("group")
    modern_broker.create_topic(topic, 3)
    members = [join(name, group, topic) for name in (NEWEST_JAVA, NEWEST_JAVA, "kafka-python")]
    share("three members", WAIT_S, 3, *members)
    members[0].kill()
    share("one was killed", SESSION_S + 3, 3, *members[1:])
    for member in members[1:]:
        member.close()


@pytest.mark.scenario("modern-33")
def test_33_static_members(modern_broker: Broker, join: Join) -> None:
    topic, group = unique("static"), unique("group")
    modern_broker.create_topic(topic, 2)
    instance, patient = "group.instance.id=", "session.timeout.ms=30000"
    first = join(NEWEST_JAVA, group, topic, instance + "a", patient)
    other = join(NEWEST_JAVA, group, topic, instance + "b", patient)
    share("both", WAIT_S, 2, first, other)
    rebalances = len(other.words("assigned"))
    first.close()
    again = join(NEWEST_JAVA, group, topic, instance + "a", patient)
    await_members("its partition", WAIT_S, lambda: again.assigned == first.assigned, again, other)
    assert len(other.words("assigned")) == rebalances
    twin = join(NEWEST_JAVA, group, topic, instance + "a", patient)
    await_members("the twin", WAIT_S, lambda: twin.assigned == again.assigned, twin, again)
    await_members("fenced", WAIT_S, lambda: "FencedInstanceId" in again.told, again)
    assert len(other.words("assigned")) == rebalances
    twin.close()
    other.close()


@pytest.mark.scenario("modern-34")
def test_34_cooperative_members_keep_what_they_can(modern_broker: Broker, join: Join) -> None:
    topic, group = unique("cooperative"), unique("group")
    modern_broker.create_topic(topic, 4)
    strategy = "partition.assignment.strategy=org.apache.kafka.clients.consumer."
    strategy += "CooperativeStickyAssignor"
    first = join(NEWEST_JAVA, group, topic, strategy)
    share("alone", WAIT_S, 4, first)
    second = join(NEWEST_JAVA, group, topic, strategy)
    share("two members", WAIT_S, 4, first, second)
    assert first.words("revoked") == [["2"]]
    first.close()
    second.close()


@pytest.mark.scenario("modern-37")
def test_37_the_coordinator_is_killed(zookeeper: ZooKeeper, tmp_path: Path, join: Join) -> None:
    """No committed offset is lost, and consumption goes on soon."""
    topic, chroot = "replicated", f"{zookeeper.connect}/{unique('coordinated')}"
    brokers = {
        number: Broker("ours", tmp_path / str(number), chroot, broker_id=number, props=REPLICATED)
        for number in (1, 2, 3)
    }
    for broker in brokers.values():
        broker.start()
    brokers[1].create_topic(topic, replicas=[1, 2, 3])
    addresses = ",".join(broker.address for broker in brokers.values())
    clients = (NEWEST_JAVA, "aiokafka")
    members = [join(client, f"of-{client}", topic, at=addresses) for client in clients]
    expected = [(0, n) for n in range(COUNT)]

    def send(count: int) -> None:
        programs.run("confluent-kafka", "write", addresses, topic, "none", count, "false")

    send(COUNT)
    await_members(
        "messages", WAIT_S, lambda: all(m.messages == expected for m in members), *members
    )
    with brokers[1].wire() as wire:
        coordinator = wire.leader("__consumer_offsets", 0)
    brokers[coordinator].kill()
    send(COUNT)
    expected += [(0, COUNT + n) for n in range(COUNT)]
    await_members("more", 10, lambda: all(m.messages == expected for m in members), *members)
    for member in members:
        member.close()
    later = [join(client, f"of-{client}", topic, at=addresses) for client in clients]
    send(1)
    following = [(0, 2 * COUNT)]
    await_members("one", WAIT_S, lambda: all(m.messages == following for m in later), *later)
    for member in later:
        member.close()
    for broker in brokers.values():
        broker.kill()


@pytest.mark.scenario("modern-40")
def test_40_offsets_in_zookeeper_are_of_another_group(
    modern_broker: Broker, join: Join, our_tools: Tools
) -> None:
    """Of the same name, whose consumers are of 0.8."""
    topic, group = unique("stored"), unique("group")
    modern_broker.create_topic(topic)
    write(modern_broker, topic)
    where = ["--zookeeper", modern_broker.zookeeper, "--group", group, "--topic", topic]
    scenario = ["--reset-offsets", "--to-offset", "3", "--execute"]
    assert our_tools.run("kafka.admin.ConsumerGroupCommand", *where, *scenario).code == 0
    node = f"/consumers/{group}/offsets/{topic}/0"
    assert zookeeper_text(modern_broker.zookeeper, node) == "3"
    member = join(NEWEST_JAVA, group, topic)
    expected = [(0, n) for n in range(COUNT)]
    await_members("messages", WAIT_S, lambda: member.messages == expected, member)
    member.close()
    assert zookeeper_text(modern_broker.zookeeper, node) == "3"


@pytest.mark.scenario("modern-32")
def test_closing_empties_the_group_at_once(modern_broker: Broker, join: Join) -> None:
    """With a session timeout that is far away."""
    topic, group = unique("left"), unique("group")
    modern_broker.create_topic(topic)
    member = join("confluent-kafka", group, topic, "session.timeout.ms=60000")
    share("alone", WAIT_S, 1, member)
    member.close()
    wait_until("empty", 5, lambda: state(modern_broker, group) is ConsumerGroupState.EMPTY)
