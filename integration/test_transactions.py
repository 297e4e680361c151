"""Transactions of unmodified clients, each scene on this broker and on Kafka 3.9.1."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from integration import modern
from integration.harness import Broker, Process, ZooKeeper
from integration.later import programs
from integration.modern import ModernBroker
from integration.wire import wait_until

PARTITIONS = 3
COUNT = 9
WAIT_S = 60
FENCED, INVALID_TIMEOUT = "_FENCED", "INVALID_TRANSACTION_TIMEOUT"


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="module", params=["ours", "modern"])
def address(
    request: pytest.FixtureRequest, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("transactions")
    broker: Process
    if request.param == "ours":
        props = {
            "api.versions.enable": "true",
            "num.partitions": PARTITIONS,
            "offsets.topic.num.partitions": 3,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
        }
        ours = Broker("ours", directory, f"{zookeeper.connect}/transactions", props=props)
        broker, found = ours.start(), ours
        yield found.address
    else:
        if reason := modern.missing():
            pytest.skip(reason)
        theirs = ModernBroker(directory, f"{zookeeper.connect}/transactions39")
        broker = theirs.start()
        yield theirs.address
    broker.kill()


def producer(address: str, id_: str, **settings: Any) -> Any:
    """After InitProducerId."""
    from confluent_kafka import Producer

    made = Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": id_,
            "transaction.timeout.ms": 30_000,
            "log_level": 0,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )
    made.init_transactions(WAIT_S)
    return made


def consumer(address: str, *, committed: bool = True, group: str = "") -> Any:
    from confluent_kafka import Consumer

    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group or unique("group"),
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )


def read(address: str, topic: str, *, committed: bool = True) -> dict[int, list[str]]:
    """All that a reader is shown up to the end, by partition."""
    from confluent_kafka import KafkaError, TopicPartition

    reader = consumer(address, committed=committed)
    reader.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found: dict[int, list[str]] = {number: [] for number in range(PARTITIONS)}
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = reader.poll(WAIT_S)
        assert message is not None, f"{ended} have ended"
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            ended.add(message.partition())
        else:
            found[message.partition()].append(message.value().decode())
    reader.close()
    return found


def make_topic(address: str, name: str) -> str:
    from confluent_kafka.admin import AdminClient, NewTopic

    topic = unique(name)
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(WAIT_S)

    def is_led() -> bool:
        partitions = admin.list_topics(topic, WAIT_S).topics[topic].partitions
        return len(partitions) == PARTITIONS and all(p.leader >= 0 for p in partitions.values())

    wait_until(f"leaders of {topic}", WAIT_S, is_led)
    return topic


def same(*values: str) -> dict[int, list[str]]:
    return {number: list(values) for number in range(PARTITIONS)}


def send(made: Any, topic: str, value: str) -> None:
    """To each partition."""
    for number in range(PARTITIONS):
        made.produce(topic, value, partition=number)


def raised(act: Callable[[], object]) -> str:
    """The name of the error."""
    from confluent_kafka import KafkaException

    with pytest.raises(KafkaException) as caught:
        act()
    return str(caught.value.args[0].name())


@pytest.mark.scenario("transactions-3")
def test_a_commit_is_read_as_a_whole(address: str) -> None:
    topic = make_topic(address, "commit")
    made = producer(address, unique("id"))
    made.begin_transaction()
    send(made, topic, "a")
    made.flush(WAIT_S)
    assert read(address, topic) == same()
    assert read(address, topic, committed=False) == same("a")
    made.commit_transaction(WAIT_S)
    wait_until("the markers", WAIT_S, lambda: read(address, topic) == same("a"))


@pytest.mark.scenario("transactions-2")
def test_what_is_aborted_is_shown_to_those_who_do_not_ask(address: str) -> None:
    topic = make_topic(address, "abort")
    made = producer(address, unique("id"))
    for number in range(6):
        made.begin_transaction()
        send(made, topic, str(number))
        if number % 2:
            made.flush(WAIT_S)
            made.abort_transaction(WAIT_S)
        else:
            made.commit_transaction(WAIT_S)
    wait_until("the markers", WAIT_S, lambda: read(address, topic) == same("0", "2", "4"))
    assert read(address, topic, committed=False) == same(*map(str, range(6)))


@pytest.mark.scenario("transactions-7", "transactions-8")
def test_a_second_producer_fences_the_first(address: str) -> None:
    topic, id_ = make_topic(address, "fence"), unique("id")
    first = producer(address, id_)
    first.begin_transaction()
    send(first, topic, "first")
    first.flush(WAIT_S)
    second = producer(address, id_)
    second.begin_transaction()
    send(second, topic, "second")
    second.flush(WAIT_S)
    assert raised(lambda: first.commit_transaction(WAIT_S)) == FENCED
    second.commit_transaction(WAIT_S)
    wait_until("the markers", WAIT_S, lambda: read(address, topic) == same("second"))


@pytest.mark.scenario("transactions-9")
def test_a_timeout_that_is_too_long(address: str) -> None:
    made = raised(lambda: producer(address, unique("id"), transaction_timeout_ms=900_001))
    assert made == INVALID_TIMEOUT


@pytest.mark.scenario("transactions-10")
@pytest.mark.slow
def test_a_silent_producer_is_aborted(address: str) -> None:
    topic = make_topic(address, "silent")
    made = producer(address, unique("id"), transaction_timeout_ms=2_000)
    made.begin_transaction()
    send(made, topic, "a")
    made.flush(WAIT_S)
    other = producer(address, unique("id"))
    other.begin_transaction()
    send(other, topic, "b")
    other.commit_transaction(WAIT_S)
    assert read(address, topic) == same()
    wait_until("the abort", WAIT_S, lambda: read(address, topic) == same("b"))
    assert raised(lambda: made.commit_transaction(WAIT_S)) == FENCED


@pytest.mark.scenario("transactions-38", "transactions-39", "transactions-40")
def test_offsets_in_transactions(address: str) -> None:
    from confluent_kafka import TopicPartition

    topic, group = make_topic(address, "offsets"), unique("group")
    reader = consumer(address, group=group)
    made = producer(address, unique("id"))

    def committed() -> int:
        asked = [TopicPartition(topic, 0)]
        return int(consumer(address, group=group).committed(asked, WAIT_S)[0].offset)

    for offset, commits in ((5, True), (9, False)):
        made.begin_transaction()
        made.produce(topic, "x", partition=0)
        position = [TopicPartition(topic, 0, offset)]
        made.send_offsets_to_transaction(position, reader.consumer_group_metadata(), WAIT_S)
        (made.commit_transaction if commits else made.abort_transaction)(WAIT_S)
        wait_until("the offset", WAIT_S, lambda: committed() == 5)
    reader.close()


@pytest.mark.scenario("transactions-1", "transactions-4", "transactions-5", "transactions-6")
@pytest.mark.parametrize("client", programs.CLIENTS)
def test_every_client(address: str, client: str) -> None:
    """Each third transaction is aborted; all have offsets of a group."""
    from confluent_kafka import TopicPartition

    if reason := programs.missing(client):
        pytest.skip(reason)
    topic, id_, group = make_topic(address, "every"), unique("id"), unique("group")
    assert programs.run(client, "transactions", address, id_, topic, group, COUNT) == ["done"]
    committed = [f"{id_} {number}" for number in range(COUNT) if number % 3 != 2]
    wait_until("the markers", WAIT_S, lambda: read(address, topic)[0] == committed)
    shown = programs.run(client, "committed", address, topic, len(committed))
    assert [line.split("\t")[4] for line in shown] == committed
    everything = programs.run(client, "read", address, topic, COUNT)
    assert [line.split("\t")[4] for line in everything] == [f"{id_} {n}" for n in range(COUNT)]
    asked = [TopicPartition(topic, 0)]
    found = consumer(address, group=group).committed(asked, WAIT_S)[0].offset
    assert found == COUNT - 1  # that of the last one is aborted


@pytest.mark.slow
def test_many_transactions_of_many_producers(address: str) -> None:
    """Each aborts every third of its transactions; what is committed is read once, in order."""
    topic = make_topic(address, "many")
    made = [producer(address, unique("id")) for _ in range(5)]
    for round_ in range(30):
        for number, each in enumerate(made):
            each.begin_transaction()
            send(each, topic, f"{number} {round_}")
        for number, each in enumerate(made):
            if (number + round_) % 3:
                each.commit_transaction(WAIT_S)
            else:
                each.flush(WAIT_S)
                each.abort_transaction(WAIT_S)

    def expected(number: int) -> list[str]:
        return [f"{number} {round_}" for round_ in range(30) if (number + round_) % 3]

    def is_right() -> bool:
        found = read(address, topic)
        return all(
            [value for value in found[partition] if value.startswith(f"{number} ")]
            == expected(number)
            for partition in range(PARTITIONS)
            for number in range(5)
        )

    wait_until("all that was committed", WAIT_S, is_right)
    everything = read(address, topic, committed=False)
    assert {len(values) for values in everything.values()} == {150}
