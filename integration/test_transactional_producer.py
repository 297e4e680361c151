"""Transactions of KafkaProducer, each scene on this broker and on Kafka 3.9.1.

An unmodified client reads what it wrote, and the consumer of kafka08 does.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration import modern
from integration.harness import Broker, Process, ZooKeeper, zookeeper_text
from integration.modern import ModernBroker
from integration.test_bank import PROPS as CLUSTER_PROPS
from integration.test_transactions import (
    PARTITIONS,
    WAIT_S,
    consumer,
    make_topic,
    read,
    same,
    unique,
)
from integration.test_transactions import address as address
from integration.wire import wait_until
from kafka08.client.cluster import TRANSACTION, ClusterClient, parse_broker_list
from kafka08.common import TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.consumer.standalone import StandaloneConsumer
from kafka08.producer.errors import (
    FatalTransactionError,
    IllegalStateError,
    InvalidTransactionTimeoutError,
    ProducerFencedError,
    TransactionFailedError,
    UnknownMemberIdError,
    UnsupportedVersionError,
)
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.transactions.manager import ConsumerGroupMetadata

COUNT = 2000


def producer(address: str, id_: str, **settings: object) -> KafkaProducer:
    """After init_transactions."""
    made = KafkaProducer(
        bootstrap_servers=address,
        transactional_id=id_,
        **{"transaction_timeout_ms": 30_000, "linger_ms": 2, **settings},
    )
    made.init_transactions()
    return made


def send(made: KafkaProducer, topic: str, value: str) -> None:
    """To each partition."""
    for number in range(PARTITIONS):
        made.send(topic, value.encode(), partition=number)


def read_by_ours(address: str, topic: str, *, committed: bool = True) -> dict[int, list[str]]:
    """As ``test_transactions.read``: ends when nothing came for a second."""
    config = ConsumerConfig.from_properties(
        {
            "group.id": "unused",
            "zookeeper.connect": "unused",
            "auto.offset.reset": "smallest",
            "consumer.timeout.ms": "1000",
            "api.versions.request": "true",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
    )
    found: dict[int, list[str]] = {number: [] for number in range(PARTITIONS)}
    with StandaloneConsumer(parse_broker_list(address), config) as reader:
        stream = reader.stream(topic)
        try:
            for message in stream:
                found[message.partition].append((message.value or b"").decode())
        except ConsumerTimeoutError:
            pass
    return found


def is_read(address: str, topic: str, expected: dict[int, list[str]]) -> None:
    wait_until("the markers", WAIT_S, lambda: read(address, topic) == expected)
    assert read_by_ours(address, topic) == expected


@pytest.mark.scenario("transactions-1", "transactions-2")
def test_commits_and_aborts(address: str) -> None:
    topic = make_topic(address, "own")
    with producer(address, unique("id")) as made:
        for number in range(6):
            made.begin_transaction()
            send(made, topic, str(number))
            if number % 3 == 1:
                made.flush()
                assert str(number) not in read(address, topic)[0]
                made.abort_transaction()
            else:
                made.commit_transaction()
    is_read(address, topic, same("0", "2", "3", "5"))
    everything = same(*map(str, range(6)))
    assert read(address, topic, committed=False) == everything
    assert read_by_ours(address, topic, committed=False) == everything


def test_a_producer_that_is_closed_in_a_transaction(address: str) -> None:
    topic = make_topic(address, "closed")
    with producer(address, unique("id")) as made:
        made.begin_transaction()
        send(made, topic, "open")
        made.flush()
    with producer(address, unique("id")) as made, made.transaction():
        send(made, topic, "after")
    is_read(address, topic, same("after"))


@pytest.mark.scenario("transactions-7", "transactions-8")
def test_a_second_producer_fences_the_first(address: str) -> None:
    topic, id_ = make_topic(address, "fence"), unique("id")
    first = producer(address, id_)
    first.begin_transaction()
    send(first, topic, "first")
    first.flush()
    second = producer(address, id_)
    second.begin_transaction()
    send(second, topic, "second")
    second.flush()
    with pytest.raises(ProducerFencedError):
        first.commit_transaction()
    for call in (first.abort_transaction, first.begin_transaction, lambda: send(first, topic, "x")):
        with pytest.raises(ProducerFencedError):
            call()
    first.close()
    second.commit_transaction()
    second.close()
    is_read(address, topic, same("second"))


@pytest.mark.scenario("transactions-7")
def test_a_fenced_producer_that_still_writes(address: str) -> None:
    """Its partitions were added, so that brokers refuse its batches for their epoch."""
    topic, id_ = make_topic(address, "writes"), unique("id")
    first = producer(address, id_)
    first.begin_transaction()
    send(first, topic, "first")
    first.flush()
    producer(address, id_).close()
    send(first, topic, "late")
    with pytest.raises(TransactionFailedError):
        first.commit_transaction()
    with pytest.raises(FatalTransactionError):
        first.abort_transaction()
    first.close()
    is_read(address, topic, same())


@pytest.mark.scenario("transactions-9")
def test_a_timeout_that_is_too_long(address: str) -> None:
    with (
        KafkaProducer(
            bootstrap_servers=address, transactional_id="id", transaction_timeout_ms=900_001
        ) as made,
        pytest.raises(FatalTransactionError) as caught,
    ):
        made.init_transactions()
    assert isinstance(caught.value.__cause__, InvalidTransactionTimeoutError)


@pytest.mark.scenario("transactions-38", "transactions-39")
def test_offsets_in_transactions(address: str) -> None:
    topic, group = make_topic(address, "offsets"), unique("group")
    made = producer(address, unique("id"))
    for offset, commits in ((5, True), (9, False), (7, True)):
        made.begin_transaction()
        send(made, topic, str(offset))
        made.send_offsets_to_transaction({TopicPartition(topic, 0): offset}, group)
        (made.commit_transaction if commits else made.abort_transaction)()
        expected = offset if commits else 5
        wait_until("the offset", WAIT_S, lambda: committed(address, group, topic) == expected)  # noqa: B023
    made.close()
    is_read(address, topic, same("5", "7"))


@pytest.mark.scenario("transactions-41")
def test_a_member_that_is_none(address: str) -> None:
    """The transaction is aborted, and the producer goes on."""
    topic, group = make_topic(address, "member"), unique("group")
    reader = consumer(address, group=group)
    reader.subscribe([topic])
    wait_until("a member", WAIT_S, lambda: bool(reader.poll(0.2) or reader.assignment()))
    made = producer(address, unique("id"))
    made.begin_transaction()
    send(made, topic, "0")
    stale = ConsumerGroupMetadata(group, 4711, "nobody")
    with pytest.raises(TransactionFailedError, match="must be aborted") as caught:
        made.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, stale)
    assert isinstance(caught.value.__cause__, UnknownMemberIdError)
    made.abort_transaction()
    with made.transaction():
        send(made, topic, "1")
    made.close()
    reader.close()
    is_read(address, topic, same("1"))


def committed(address: str, group: str, topic: str) -> int:
    """The next offset of partition 0; 0 if there is none."""
    from confluent_kafka import TopicPartition as Asked

    found = consumer(address, group=group).committed([Asked(topic, 0)], WAIT_S)[0].offset
    return max(int(found), 0)


def test_a_chain_counts_each_record_once(address: str) -> None:
    """Consume, transform, produce, by processes that die at any point, and are followed by others
    with the same transactional id."""
    source, target = make_topic(address, "source"), make_topic(address, "target")
    group, id_, rng = unique("group"), unique("id"), random.Random(1)
    with KafkaProducer(bootstrap_servers=address, enable_idempotence=True) as made:
        made.send_many(source, [b"%d" % n for n in range(COUNT)], partitions=[0] * COUNT)
    dead = []
    lives = 0
    while True:
        lives += 1
        made = producer(address, id_, linger_ms=0)
        position = committed(address, group, source)  # it is stable: what was open is aborted
        try:
            transform(made, address, (source, target), group, position, rng)
        except InterruptedError:
            dead.append(made)  # it never says a word again
        else:
            made.close()
            break
    assert lives > 5
    for made in dead:
        made.close(0)
    found = wait_for_all(address, target)
    assert found == [f"{n} {n * n}" for n in range(COUNT)]
    assert read_by_ours(address, target)[0] == found


def wait_for_all(address: str, topic: str) -> list[str]:
    found: list[str] = []

    def are_there() -> bool:
        found[:] = read(address, topic)[0]
        return len(found) >= COUNT

    wait_until("all results", WAIT_S, are_there)
    return found


def transform(
    made: KafkaProducer,
    address: str,
    topics: tuple[str, str],
    group: str,
    position: int,
    rng: random.Random,
) -> None:
    source, target = topics
    config = ConsumerConfig.from_properties(
        {
            "group.id": "unused",
            "zookeeper.connect": "unused",
            "consumer.timeout.ms": "10000",
            "api.versions.request": "true",
            "isolation.level": "read_committed",
        }
    )
    with StandaloneConsumer(parse_broker_list(address), config) as reader:
        stream = iter(reader.stream(source, 0, position))
        while position < COUNT:
            made.begin_transaction()
            for _ in range(min(rng.randint(1, 40), COUNT - position)):
                message = next(stream)
                number = int(message.value or b"-1")
                made.send(target, b"%d %d" % (number, number * number), partition=0)
                position = message.offset + 1
                if rng.random() < 0.001:
                    raise InterruptedError("before the offsets")
            made.send_offsets_to_transaction({TopicPartition(source, 0): position}, group)
            if rng.random() < 0.05:
                made.flush()
                raise InterruptedError("before the commit")
            made.commit_transaction()
            if rng.random() < 0.02:
                raise InterruptedError("after the commit")


# --- brokers that die


@pytest.fixture(params=["ours", "modern"])
def single(
    request: pytest.FixtureRequest,
    zookeeper: ZooKeeper,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> Broker | ModernBroker:
    """A broker that may be killed."""
    broker: Broker | ModernBroker
    if request.param == "ours":
        props = {"api.versions.enable": "true", "num.partitions": PARTITIONS}
        broker = Broker("ours", tmp_path, f"{zookeeper.connect}/{unique('single')}", props=props)
    else:
        if reason := modern.missing():
            pytest.skip(reason)
        broker = ModernBroker(tmp_path, f"{zookeeper.connect}/{unique('single')}")
    launch(broker)
    return broker.start()


def kill_and_spawn(broker: Broker | ModernBroker) -> None:
    """3.9.1 does not start while its former session lasts."""
    broker.kill()
    chroot = str(broker.zookeeper)
    wait_until(
        "the end of its session", 60, lambda: zookeeper_text(chroot, "/brokers/ids/0") is None
    )
    broker.spawn()


@pytest.mark.slow
def test_the_broker_is_killed_while_an_idempotent_producer_sends(
    single: Broker | ModernBroker,
) -> None:
    """Nothing is doubled, lost or out of order."""
    topic = make_topic(single.address, "killed")
    settings = {"enable_idempotence": True, "batch_size": 400, "linger_ms": 1}
    with KafkaProducer(bootstrap_servers=single.address, **settings) as made:
        futures = []
        for number in range(5 * COUNT):
            futures.append(made.send(topic, b"%d" % number, partition=0))
            if number in (COUNT, 3 * COUNT):
                futures[COUNT // 2].result(WAIT_S)
                kill_and_spawn(single)
            if number > 400:
                futures[number - 400].result(WAIT_S)
        made.flush(WAIT_S)
    assert [future.result(0).offset for future in futures] == list(range(5 * COUNT))
    assert read(single.address, topic)[0] == [str(number) for number in range(5 * COUNT)]


@pytest.mark.slow
def test_the_broker_is_killed_in_transactions(single: Broker | ModernBroker) -> None:
    """It coordinates, leads, and stores the offsets of the group. The producer goes on."""
    topic, group = make_topic(single.address, "killed"), unique("group")
    made = producer(single.address, unique("id"), transaction_timeout_ms=120_000)
    restarts = []
    for number in range(60):
        made.begin_transaction()
        send(made, topic, str(number))
        if number in (20, 40):
            made.flush()
            kill_and_spawn(single)
            restarts.append(number)
            send(made, topic, f"{number} again")
        made.send_offsets_to_transaction({TopicPartition(topic, 0): number}, group)
        if number % 4 == 3 or number == 40:
            made.abort_transaction()
        else:
            made.commit_transaction()
    made.close()
    values = [str(n) for n in range(60) if n % 4 != 3 and n != 40]
    values.insert(values.index("20") + 1, "20 again")
    is_read(single.address, topic, same(*values))
    assert committed(single.address, group, topic) == 58
    assert restarts == [20, 40]


@pytest.fixture
def cluster(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> Iterator[dict[int, Broker]]:
    chroot = f"{zookeeper.connect}/{unique('three')}"
    props = {**CLUSTER_PROPS, "zookeeper.session.timeout.ms": 6000}
    brokers = {}
    for number in (1, 2, 3):
        directory = tmp_path / str(number)
        broker = Broker("ours", directory, chroot, broker_id=number, props=props)
        launch(broker)
        brokers[number] = broker.start()
    yield brokers
    for broker in brokers.values():
        assert "Traceback" not in broker.log, broker.log[-5000:]


@pytest.mark.scenario("transactions-16", "transactions-20")
@pytest.mark.slow
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_the_coordinator_and_leaders_are_killed(cluster: dict[int, Broker], end: str) -> None:
    """Each in the middle of a transaction, one after the other."""
    topic, id_, group = unique("three"), unique("id"), unique("group")
    cluster[1].create_topic(topic, replicas=[1, 2, 3], partitions=PARTITIONS)
    address = ",".join(broker.address for broker in cluster.values())
    assert committed(address, group, topic) == 0  # makes __consumer_offsets, with three replicas
    made = producer(address, id_, transaction_timeout_ms=120_000)
    client = ClusterClient(parse_broker_list(address))

    def coordinator() -> int:
        return client.coordinator(id_, TRANSACTION).id

    def leader(number: int) -> int:
        client.refresh([topic])
        return client.leader(TopicPartition(topic, number)).id

    victims: list[Callable[[], int]] = [coordinator, *(lambda n=n: leader(n) for n in range(3))]  # type: ignore[misc]
    every = (topic, "__consumer_offsets", "__transaction_state")
    values = []
    for number, victim in enumerate(victims):
        made.begin_transaction()
        send(made, topic, f"{number} before")
        made.flush()
        killed = cluster[victim()]
        killed.kill()
        send(made, topic, f"{number} after")
        made.send_offsets_to_transaction({TopicPartition(topic, 0): number + 1}, group)
        getattr(made, f"{end}_transaction")()
        with made.transaction():
            send(made, topic, f"{number} next")
        values += [f"{number} before", f"{number} after"] if end == "commit" else []
        values.append(f"{number} next")
        killed.start()
        wait_until("the isr", WAIT_S, lambda: have_all(client, *every))
    made.close()
    is_read(address, topic, same(*values))
    assert committed(address, group, topic) == (len(victims) if end == "commit" else 0)
    client.close()


def have_all(client: ClusterClient, *topics: str) -> bool:
    """Whether all partitions have three replicas in their isr."""
    client.refresh(topics)
    return all(len(each.isr) == 3 for topic in topics for each in client.partitions(topic))


# --- brokers without transactions


def test_brokers_that_serve_clients_of_0_8_alone(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    props = {"api.versions.enable": "false"}
    broker = Broker("ours", tmp_path, f"{zookeeper.connect}/{unique('old')}", props=props)
    launch(broker)
    broker.start()
    refused(broker.address)


def test_brokers_of_0_8_2_2(
    zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    broker = Broker("original", tmp_path, f"{zookeeper.connect}/{unique('old')}")
    launch(broker)
    broker.start()
    refused(broker.address)


def refused(address: str) -> None:
    with KafkaProducer(bootstrap_servers=address, transactional_id="id") as made:
        with pytest.raises(FatalTransactionError, match="brokers that answer ApiVersions") as error:
            made.init_transactions()
        assert isinstance(error.value.__cause__, UnsupportedVersionError)
        with pytest.raises(FatalTransactionError):
            made.send("t", b"x")


def test_two_threads_send_in_one_transaction(address: str) -> None:
    topic = make_topic(address, "threads")
    made = producer(address, unique("id"))

    def fill(name: str) -> None:
        for number in range(300):
            made.send(topic, f"{name} {number}".encode(), partition=0)

    with pytest.raises(IllegalStateError):
        fill("none")
    with made.transaction():
        tasks = [threading.Thread(target=fill, args=(name,)) for name in "ab"]
        for task in tasks:
            task.start()
        for task in tasks:
            task.join()
    made.close()
    found = read(address, topic)[0]
    for name in "ab":
        own = [each for each in found if each.startswith(name)]
        assert own == [f"{name} {number}" for number in range(300)]
