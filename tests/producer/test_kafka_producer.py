from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kafka08.common import TopicPartition
from kafka08.errors import (
    ConfigError,
    InvalidTopicError,
    KafkaError,
    MessageSizeTooLargeError,
    NotLeaderForPartitionError,
    ProtocolError,
)
from kafka08.message.scan import iter_entries
from kafka08.metrics.clients import ClientCollector
from kafka08.producer import kafka_producer
from kafka08.producer.errors import (
    BufferExhaustedError,
    DeliveryTimeoutError,
    DisconnectedError,
    ForkedProducerError,
    MetadataTimeoutError,
    ProducerClosedError,
    RecordTooLargeError,
    SerializationError,
    WaitTimeoutError,
)
from kafka08.producer.kafka_config import KafkaProducerConfig, parse_acks
from kafka08.producer.kafka_producer import KafkaProducer, RecordMetadata
from kafka08.producer.partitioners import (
    RoundRobin,
    StickyRandom,
    byte_array_partitioner,
    default_partitioner,
)
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.producer.fake_producer import ProducerDriver, failing, threaded


def values(driver: ProducerDriver, topic: str = "one", partition: int = 0) -> list[bytes | None]:
    return driver.cluster.values(topic, partition)


# --- the way of a record


def test_a_record_is_sent_and_its_future_tells_where_it_is() -> None:
    driver = ProducerDriver()
    first = driver.producer.send("one", b"a", b"k")
    second = driver.producer.send("one", b"b")
    assert not first.done()
    with pytest.raises(WaitTimeoutError, match="still being sent"):
        first.result(0.01)
    driver.run()
    assert first.done()
    assert first.result() == RecordMetadata("one", 0, 0)
    assert second.get(1) == ("one", 0, 1)
    assert second.exception() is None
    assert values(driver) == [b"a", b"b"]
    assert driver.producer.metrics()["record-send-total"] == 2
    assert driver.producer.metrics()["buffer-available-bytes"] == 32 << 20


def test_callbacks_run_in_order_and_what_they_raise_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driver = ProducerDriver()
    called: list[Any] = []

    def callback(metadata: RecordMetadata | None, error: BaseException | None) -> None:
        called.append((metadata, error))
        raise RuntimeError("mine")

    for value in (b"a", b"b"):
        future = driver.producer.send("one", value, callback=callback)
    future.add_done_callback(lambda done: called.append(done.result().offset))
    driver.run()
    assert called == [(("one", 0, 0), None), (("one", 0, 1), None), 1]
    assert caplog.text.count("user-provided callback") == 2
    future.add_done_callback(lambda done: called.append("late"))
    assert called[-1] == "late"


def test_acks_0_ends_with_the_write() -> None:
    driver = ProducerDriver(acks=0)
    future = driver.producer.send("one", b"a")
    driver.write()
    assert future.result() == ("one", 0, -1)
    assert driver.produced[0].acks == 0
    future = driver.producer.send("one", b"b")
    driver.connections[0].refuse_write = BrokenPipeError("gone")
    driver.write()
    with pytest.raises(DisconnectedError):
        future.result()


def test_linger_waits_for_a_batch_to_fill() -> None:
    driver = ProducerDriver(linger_ms=200, batch_size=100)
    driver.producer.send("one", b"x" * 20)
    driver.write()
    assert driver.produced == []
    lane = driver.lanes[0]
    assert driver.sender.send_all(lane) == pytest.approx(0.2)
    driver.producer.send("one", b"y" * 30)  # full now
    driver.run()
    assert len(driver.produced) == 1
    driver.producer.send("one", b"z")
    driver.pass_time(200)
    driver.run()
    assert values(driver) == [b"x" * 20, b"y" * 30, b"z"]


def test_several_batches_of_a_partition_travel_together_up_to_the_request_size() -> None:
    driver = ProducerDriver(batch_size=200, max_request_size=1000)
    futures = [driver.producer.send("one", b"%03d" % n + b"x" * 97) for n in range(20)]
    driver.write()
    sizes = [len(r.topics[0].partitions[0].message_set) for r in driver.produced]
    assert max(sizes) <= 1000
    assert max(sizes) > 200
    driver.read()
    driver.run()
    assert [future.result().offset for future in futures] == list(range(20))
    assert values(driver) == [b"%03d" % n + b"x" * 97 for n in range(20)]


def test_no_more_requests_in_flight_than_allowed() -> None:
    driver = ProducerDriver(
        batch_size=0, max_request_size=50, max_in_flight_requests_per_connection=2
    )
    for n in range(6):
        driver.producer.send("one", b"%d" % n)
    driver.write()
    assert len(driver.produced) == 2
    assert driver.producer.metrics()["requests-in-flight"] == 2
    driver.run()
    driver.run()
    driver.run()
    assert values(driver) == [b"%d" % n for n in range(6)]


def test_each_partition_has_its_turn_in_a_full_request() -> None:
    driver = ProducerDriver(
        batch_size=0, max_request_size=60, max_in_flight_requests_per_connection=1
    )
    for n in range(4):
        driver.producer.send("t", b"%020d" % n, partition=n % 2)
    firsts = set()
    for _ in range(4):
        driver.run()
        firsts.add(driver.produced[-1].topics[0].partitions[0].partition)
    assert firsts == {0, 1}


@pytest.mark.scenario("client-35")
@pytest.mark.parametrize(("codec", "number"), [("gzip", 1), ("snappy", 2), ("lz4", 3)])
def test_compression_of_the_topics_listed(codec: str, number: int) -> None:
    driver = ProducerDriver(compression_type=codec, compressed_topics=["one"])
    for n in range(3):
        driver.producer.send("one", b"%d" % n)
        driver.producer.send("t", b"%d" % n, partition=0)
    driver.run()
    sets = {t.topic: t.partitions[0].message_set for r in driver.produced for t in r.topics}
    assert [entry.codec for entry in iter_entries(sets["one"])] == [number]
    assert [entry.codec for entry in iter_entries(sets["t"])] == [0, 0, 0]
    assert values(driver) == [b"0", b"1", b"2"]


# --- where records go


def test_keys_go_where_the_java_producer_puts_them() -> None:
    driver = ProducerDriver()
    driver.cluster.create("twelve", 12)
    for key in (b"foobar", b"21"):
        driver.producer.send("twelve", key, key)
    driver.run()
    assert values(driver, "twelve", 6) == [b"foobar"]
    assert values(driver, "twelve", 0) == [b"21"]


def test_other_partitioners() -> None:
    driver = ProducerDriver(
        partitioner=default_partitioner, partition_on_raw_key=True, key_serializer=str.encode
    )
    driver.cluster.create("twelve", 12)
    driver.producer.send("twelve", b"v", "key")
    driver.run()
    assert values(driver, "twelve", 11) == [b"v"]
    driver = ProducerDriver(partitioner=byte_array_partitioner)
    driver.cluster.create("twelve", 12)
    driver.producer.send("twelve", b"v", b"key")
    driver.run()
    assert values(driver, "twelve", 6) == [b"v"]
    driver = ProducerDriver(partitioner=lambda key, n: n)
    with pytest.raises(ValueError, match="Invalid partition"):
        driver.producer.send("one", b"v", b"key")


@pytest.mark.scenario("client-30")
def test_records_without_a_key_take_turns_among_partitions_with_a_leader() -> None:
    driver = ProducerDriver(unkeyed=lambda: RoundRobin(random.Random(1)))
    driver.cluster.create("four", 4)
    driver.cluster.leaders[TopicPartition("four", 2)] = -1
    for n in range(6):
        driver.producer.send("four", b"%d" % n)
    driver.run()
    assert [len(values(driver, "four", p)) for p in range(4)] == [2, 2, 0, 2]


def test_sticky_records_change_their_partition_with_the_metadata() -> None:
    driver = ProducerDriver(unkeyed=lambda: StickyRandom(random.Random(2)))
    driver.cluster.create("many", 50)
    found = set()
    for _ in range(5):
        futures = [driver.producer.send("many", b"x") for _ in range(5)]
        driver.run()
        (partition,) = {future.result().partition for future in futures}
        found.add(partition)
        driver.metadata.refresh()
    assert len(found) > 1


def test_an_explicit_partition_and_one_that_does_not_exist() -> None:
    driver = ProducerDriver()
    driver.producer.send("t", b"v", b"any key", partition=1)
    driver.run()
    assert values(driver, "t", 1) == [b"v"]
    for partition in (2, -1):
        with pytest.raises(ValueError, match="not in the range"):
            driver.producer.send("t", b"v", partition=partition)


# --- errors of single records


def test_serializers() -> None:
    driver = ProducerDriver(value_serializer=lambda v: None if v == "" else v.encode())
    driver.producer.send("one", "größe")
    driver.producer.send("one", "", b"key")
    with pytest.raises(SerializationError, match="Can't convert value of class int"):
        driver.producer.send("one", 1)
    with pytest.raises(SerializationError, match="give key_serializer"):
        driver.producer.send("one", "v", "k")
    driver.run()
    assert values(driver) == ["größe".encode(), None]
    named = ProducerDriver(
        value_serializer="org.apache.kafka.common.serialization.StringSerializer"
    )
    named.producer.send("one", "ü")
    named.run()
    assert values(named) == ["ü".encode()]
    plain = ProducerDriver()
    plain.producer.send("one", bytearray(b"a"))
    plain.producer.send("one", memoryview(b"b"))
    plain.run()
    assert values(plain) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"max_request_size": 100}, "max.request.size"), ({"buffer_memory": 100}, "buffer.memory")],
)
def test_too_large(settings: dict[str, int], name: str) -> None:
    driver = ProducerDriver(**settings)
    called: list[Any] = []
    future = driver.producer.send(
        "one", b"x" * 75, callback=lambda m, error: called.append((m, type(error)))
    )
    with pytest.raises(RecordTooLargeError, match=f"101 bytes.*100 bytes of {name}"):
        future.result()
    assert called == [(None, RecordTooLargeError)]
    driver.producer.send("one", b"x" * 74)
    driver.run()
    assert len(values(driver)) == 1


def test_an_unknown_topic_fails_its_future_after_a_while() -> None:
    driver = ProducerDriver(metadata_fetch_timeout_ms=3000)
    begin = driver.now_ms
    future = driver.producer.send("nowhere", b"v")
    assert driver.now_ms - begin == 3000
    with pytest.raises(MetadataTimeoutError, match=r"nowhere within 3000 ms.*does not host"):
        future.result()
    assert driver.metadata.due_in(0) > 0  # nobody waits for it any more


def test_an_illegal_topic_fails_at_once() -> None:
    driver = ProducerDriver()
    driver.cluster.topic_errors["a b"] = 17
    begin = driver.now_ms
    future = driver.producer.send("a b", b"v")
    with pytest.raises(InvalidTopicError, match="Topic a b"):
        future.result()
    assert driver.now_ms - begin <= 60000


@pytest.mark.scenario("client-37")
def test_full_buffer_without_blocking() -> None:
    driver = ProducerDriver(buffer_memory=100, block_on_buffer_full=False)
    driver.producer.send("one", b"x" * 50)
    with pytest.raises(BufferExhaustedError, match=r"block\.on\.buffer\.full is false"):
        driver.producer.send("one", b"x" * 50)
    driver.run()
    driver.producer.send("one", b"x" * 50)


@pytest.mark.scenario("client-37")
def test_full_buffer_with_blocking() -> None:
    driver = ProducerDriver(buffer_memory=100, linger_ms=10**6, max_block_ms=1000)
    driver.producer.send("one", b"x" * 50)
    driver.runtime.on_sleep = lambda seconds: driver.run()
    driver.producer.send("one", b"y" * 50)  # who waits for room is waited for by no linger
    assert values(driver) == [b"x" * 50]
    driver.silent = True
    begin = driver.now_ms
    with pytest.raises(BufferExhaustedError, match="within 1000 ms"):
        driver.producer.send("one", b"z" * 50)
    assert driver.now_ms - begin == 1000


# --- errors of requests


def test_without_retries_the_error_is_the_result() -> None:
    driver = ProducerDriver()
    driver.cluster.script = failing(6)
    future = driver.producer.send("one", b"v")
    driver.run()
    with pytest.raises(NotLeaderForPartitionError, match=r"\[one,0\]"):
        future.result()
    with pytest.raises(NotLeaderForPartitionError):
        future.result()
    assert driver.staleness.is_known
    assert driver.producer.metrics()["record-error-total"] == 1


@pytest.mark.scenario("client-38")
def test_a_retry_after_the_backoff_delivers_once() -> None:
    driver = ProducerDriver(retries=1)
    driver.cluster.script = failing(6)
    called: list[Any] = []
    driver.producer.send("one", b"v", callback=lambda m, e: called.append((m, e)))
    driver.run()
    driver.run()
    assert called == []  # backing off
    driver.pass_time(100)
    driver.run()
    assert called == [(("one", 0, 0), None)]
    assert values(driver) == [b"v"]
    assert driver.producer.metrics()["record-retry-total"] == 1


def test_a_partition_with_a_retry_keeps_its_order() -> None:
    driver = ProducerDriver(retries=5, batch_size=0, max_request_size=30)
    driver.cluster.script = failing(19)
    for n in range(4):
        driver.producer.send("one", b"%d" % n)
    for _ in range(8):
        driver.run()
        driver.pass_time(100)
    assert values(driver) == [b"0", b"1", b"2", b"3"]


def test_order_on_request_only_among_retries() -> None:
    driver = ProducerDriver(
        retries=5, batch_size=0, max_request_size=30, guarantee_message_order=False
    )
    driver.cluster.script = failing(19, 19)
    for n in range(4):
        driver.producer.send("one", b"%d" % n)
    driver.write()
    assert len(driver.produced) == 4  # pipelined
    for _ in range(8):
        driver.read()
        driver.write()
        driver.pass_time(100)
    # as in the original later ones may overtake, but those that failed stay in order
    assert values(driver) == [b"2", b"3", b"0", b"1"]


def test_final_errors_are_not_retried() -> None:
    driver = ProducerDriver(retries=5)
    driver.cluster.script = failing(10)
    future = driver.producer.send("one", b"v")
    driver.run()
    with pytest.raises(MessageSizeTooLargeError):
        future.result()


def test_a_set_refused_for_its_size_is_sent_again_batch_by_batch() -> None:
    driver = ProducerDriver(batch_size=0)
    driver.cluster.script = failing(18, 0, 10)
    futures = [driver.producer.send("one", b"%d" % n) for n in range(4)]
    driver.run()
    driver.run()
    driver.run()
    assert values(driver) == [b"0", b"2", b"3"]
    assert isinstance(futures[1].exception(), MessageSizeTooLargeError)
    assert [futures[n].result().offset for n in (0, 2, 3)] == [0, 1, 2]


def test_nothing_overtakes_a_set_that_may_be_refused_for_its_size() -> None:
    driver = ProducerDriver(batch_size=0)
    driver.producer.send("one", b"single")
    driver.write()
    driver.cluster.script = failing(0, 10)
    for n in range(4):
        driver.producer.send("one", b"%d" % n)
    driver.write()
    driver.producer.send("one", b"later")
    driver.write()
    assert len(driver.produced) == 2  # the third waits
    for _ in range(3):
        driver.run()
    order = [b"single", b"0", b"1", b"2", b"3", b"later"]
    assert values(driver) == order
    # A set that is not larger than an accepted one cannot be refused: requests are pipelined.
    for _ in range(2):
        driver.producer.send("one", b"a")
        driver.producer.send("one", b"b")
        driver.run()
    sent = len(driver.produced)
    for _ in range(3):
        driver.producer.send("one", b"c")
        driver.producer.send("one", b"d")
        driver.write()
    assert len(driver.produced) == sent + 3


@pytest.mark.parametrize("broken", [ConnectionResetError("gone"), ProtocolError("garbage")])
def test_a_lost_connection(broken: Exception) -> None:
    driver = ProducerDriver(retries=1)
    first = driver.producer.send("one", b"a")
    driver.write()
    driver.connections[0].broken = broken
    driver.read()
    assert driver.connections[0].aborted
    assert not first.done()
    driver.pass_time(100)
    driver.run()
    assert first.result().offset == 0
    assert len(driver.connections) == 2
    driver.cluster.script = None
    second = driver.producer.send("one", b"b")
    driver.write()
    for _ in range(2):
        driver.connections[-1].broken = broken
        driver.read()
        driver.pass_time(100)
        driver.write()
    with pytest.raises(DisconnectedError, match="lost before it answered"):
        second.result()


def test_an_answer_that_leaves_out_a_partition_is_garbage() -> None:
    driver = ProducerDriver()
    driver.cluster.script = lambda port, request: (
        schemas.ProduceResponse([]) if isinstance(request, schemas.ProduceRequest) else None
    )
    future = driver.producer.send("one", b"a")
    driver.run()
    with pytest.raises(DisconnectedError, match="without some of the requested"):
        future.result()


def test_codes_0822_does_not_know() -> None:
    driver = ProducerDriver(retries=3)
    driver.cluster.script = failing(99)
    future = driver.producer.send("one", b"a")
    driver.run()
    with pytest.raises(KafkaError):
        future.result()


def test_a_write_that_fails_is_a_lost_connection() -> None:
    driver = ProducerDriver(retries=1)
    driver.producer.send("one", b"a")
    driver.write()
    driver.read()
    driver.connections[0].refuse_write = BrokenPipeError("gone")
    future = driver.producer.send("one", b"b")
    driver.write()
    driver.pass_time(100)
    driver.run()
    assert future.result().offset == 1


def test_a_broker_that_hangs_is_given_up() -> None:
    driver = ProducerDriver(request_timeout_ms=5000)
    driver.silent = True
    future = driver.producer.send("one", b"a")
    driver.run()
    driver.pass_time(5000)
    driver.sender.sweep()
    assert not future.done()
    driver.pass_time(1)
    driver.sender.sweep()
    with pytest.raises(DisconnectedError, match="no answer for 5 s"):
        future.result()


def test_a_stop_is_seen_by_a_round_that_begins_meanwhile() -> None:
    """It clears the event that was set to wake it."""
    driver = ProducerDriver()
    sender = driver.sender
    sender.stop(join=False)
    driver.runtime.slept.clear()
    sender.sweep_or_wait()
    assert driver.runtime.slept == []


def test_a_broker_that_is_down_is_tried_until_the_delivery_timeout() -> None:
    driver = ProducerDriver(delivery_timeout_ms=10000)
    driver.producer.partitions_for("one")
    driver.cluster.down.add(9090)
    future = driver.producer.send("one", b"a")
    driver.write()
    driver.pass_time(10000)
    driver.sender.sweep()
    assert not future.done()
    driver.pass_time(1)
    driver.sender.sweep()
    with pytest.raises(DeliveryTimeoutError, match=r"delivery\.timeout\.ms"):
        future.result()
    assert driver.producer.metrics()["buffer-available-bytes"] == 32 << 20


@pytest.mark.scenario("client-31")
def test_a_partition_without_a_leader_waits_while_others_go() -> None:
    driver = ProducerDriver()
    driver.cluster.leaders[TopicPartition("t", 0)] = -1
    waiting = driver.producer.send("t", b"a", partition=0)
    going = driver.producer.send("t", b"b", partition=1)
    driver.run()
    assert going.done()
    assert not waiting.done()
    driver.metadata.refresh()
    assert driver.staleness.is_known  # again soon
    driver.cluster.leaders[TopicPartition("t", 0)] = 0
    driver.metadata.refresh()
    driver.run()
    assert waiting.result().offset == 0


def test_records_follow_their_leader() -> None:
    driver = ProducerDriver(brokers=2, retries=3)
    driver.producer.partitions_for("one")
    driver.cluster.leaders[TopicPartition("one", 0)] = 1
    future = driver.producer.send("one", b"a")
    driver.run()
    driver.metadata.refresh()
    driver.pass_time(100)
    driver.run()
    assert future.result().offset == 0
    assert [connection.port for connection in driver.connections] == [9090, 9091]


# --- metadata


def test_metadata_is_refreshed_by_age_and_on_request() -> None:
    driver = ProducerDriver(metadata_max_age_ms=1000)
    keeper = driver.metadata
    assert keeper.due_in(0) > 60  # no topic, nothing to ask
    driver.producer.send("one", b"a")
    now = driver.now_ms / 1000
    assert keeper.due_in(now) == pytest.approx(1.0)
    driver.staleness.report()
    assert keeper.due_in(now) == pytest.approx(0.1)
    driver.cluster.down.add(9090)
    driver.pass_time(500)
    keeper.refresh()
    assert keeper.due_in(driver.now_ms / 1000) == pytest.approx(0.1)


def test_partitions_for() -> None:
    driver = ProducerDriver(metadata_fetch_timeout_ms=100)
    assert [p.partition for p in driver.producer.partitions_for("t")] == [0, 1]
    with pytest.raises(MetadataTimeoutError):
        driver.producer.partitions_for("nowhere")


# --- flush, close, fork; on real threads where there is something to wait for


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create("one", 1)
    cluster.create("t", 2)
    return cluster


def test_flush_sends_what_lingers_and_waits_for_it(cluster: FakeCluster) -> None:
    producer, _ = threaded(cluster, linger_ms=10**6)
    with producer:
        futures = [producer.send("t", b"%d" % n) for n in range(10)]
        producer.flush(10)
        assert all(future.done() for future in futures)


def test_close_sends_what_lingers(cluster: FakeCluster) -> None:
    producer, _ = threaded(cluster, linger_ms=10**6)
    futures = [producer.send("one", b"%d" % n) for n in range(10)]
    producer.close()
    producer.close()
    assert [future.result(0).offset for future in futures] == list(range(10))
    with pytest.raises(ProducerClosedError):
        producer.send("one", b"late")
    with pytest.raises(ProducerClosedError):
        producer.flush()


def test_close_with_a_timeout_fails_what_is_left(cluster: FakeCluster) -> None:
    producer, broker = threaded(cluster)
    broker.mute = True
    called: list[Any] = []
    future = producer.send("one", b"a", callback=lambda m, e: called.append(type(e)))
    assert broker.arrived.wait(10)
    with pytest.raises(WaitTimeoutError):
        producer.flush(0)
    producer.close(0)
    with pytest.raises(DeliveryTimeoutError, match="closed before"):
        future.result(0)
    assert called == [DeliveryTimeoutError]


def test_close_wakes_senders_that_wait(cluster: FakeCluster) -> None:
    producer, broker = threaded(cluster, buffer_memory=100)
    broker.mute = True
    producer.send("one", b"x" * 60)
    assert broker.arrived.wait(10)
    raised: list[BaseException] = []

    def blocked() -> None:
        try:
            producer.send("one", b"y" * 60)
        except KafkaError as error:
            raised.append(error)

    thread = threading.Thread(target=blocked)
    thread.start()
    while not producer.metrics()["waiting-threads"]:
        pass
    producer.close(0)
    thread.join(10)
    assert [type(error) for error in raised] == [ProducerClosedError]


def test_close_and_flush_in_a_callback(cluster: FakeCluster) -> None:
    producer, _ = threaded(cluster)
    raised: list[BaseException] = []
    closed = threading.Event()

    def callback(metadata: Any, error: Any) -> None:
        try:
            producer.flush()
        except KafkaError as refused:
            raised.append(refused)
        producer.close()
        closed.set()

    producer.send("one", b"a", callback=callback)
    assert closed.wait(10)
    assert len(raised) == 1


def test_an_interrupted_close_leaves_no_future_undone(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer, broker = threaded(cluster)
    broker.mute = True
    future = producer.send("one", b"a")

    def interrupted(timeout: float | None) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(producer, "_finish_all", interrupted)
    with pytest.raises(KeyboardInterrupt):
        producer.close()
    assert isinstance(future.exception(0), DeliveryTimeoutError)


def test_a_callback_does_not_wait_for_room(cluster: FakeCluster) -> None:
    producer, _ = threaded(cluster, buffer_memory=100)
    raised: list[BaseException] = []
    called = threading.Event()

    def callback(metadata: Any, error: Any) -> None:
        try:
            for _ in range(2):
                producer.send("one", b"x" * 60)
        except KafkaError as refused:
            raised.append(refused)
        called.set()

    with producer:
        producer.send("one", b"x" * 60, callback=callback)
        assert called.wait(10)
    assert [type(error) for error in raised] == [BufferExhaustedError]


def test_many_threads_lose_nothing(cluster: FakeCluster) -> None:
    producer, _ = threaded(cluster, batch_size=500, buffer_memory=5000, retries=3)
    futures: list[Any] = []

    def send(number: int) -> None:
        futures.extend([producer.send("t", b"%d:%d" % (number, n)) for n in range(200)])

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    producer.close(30)
    assert len({future.result(0) for future in futures}) == 800
    stored = [v for p in range(2) for v in cluster.values("t", p)]
    assert len(stored) == 800
    for number in range(4):
        for partition in range(2):
            mine = [
                v for v in cluster.values("t", partition) if v and v.startswith(b"%d:" % number)
            ]
            order = [int(v.partition(b":")[2]) for v in mine if v]
            assert order == sorted(order)


def test_a_forked_child_is_told_to_make_its_own(cluster: FakeCluster) -> None:
    producer, _ = threaded(cluster)
    producer.send("one", b"a").result(10)
    producer.flush()
    kafka_producer.after_fork()  # what runs in the child
    for call in (lambda: producer.send("one", b"b"), producer.flush):
        with pytest.raises(ForkedProducerError, match="make a new one in the child"):
            call()
    producer.close()  # harmless
    producer._refusal = None
    producer.close()


# --- settings


def test_settings_by_either_name() -> None:
    config = KafkaProducerConfig.of(
        {
            "bootstrap.servers": ["a:1", "b:2"],
            "linger_ms": 5,
            "block.on.buffer.full": False,
            "acks": "all",
            "timeout_ms": 5000,
            "client_id": None,
        }
    )
    assert config.bootstrap_servers == ("a:1", "b:2")
    assert config.linger_ms == 5
    assert config.block_on_buffer_full is False
    assert config.request_timeout_ms == 15000
    assert config.client_id == ""


def test_defaults_are_those_of_0822() -> None:
    config = KafkaProducerConfig.of({"bootstrap_servers": "a:1"})
    assert (config.acks, config.retries, config.batch_size, config.linger_ms) == ("1", 0, 16384, 0)
    assert (config.buffer_memory, config.max_request_size) == (33554432, 1048576)
    assert (config.timeout_ms, config.metadata_fetch_timeout_ms) == (30000, 60000)
    assert config.max_in_flight_requests_per_connection == 5


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"bootstrap_servers": "a"},
        {"acks": "some"},
        {"acks": "-2"},
        {"lingerms": 1},
        {"compression_type": "zip"},
        {"batch_size": -1},
        {"bootstrap_servers": ""},
    ],
)
def test_bad_settings(bad: dict[str, Any]) -> None:
    given = {"bootstrap_servers": "a:1", **bad} if bad else {}
    with pytest.raises(ConfigError):
        KafkaProducer(given)


def test_acks() -> None:
    assert [parse_acks(text) for text in ("all", "-1", "0", "1", "3")] == [-1, -1, 0, 1, 3]


# --- metrics


@pytest.mark.scenario("ops-19")
def test_series_of_topics_and_nodes() -> None:
    driver = ProducerDriver(client_id="me")
    registry = CollectorRegistry()
    registry.register(ClientCollector(driver.producer))

    def value(name: str, **labels: str) -> float | None:
        full = f"kafka_producer_producer_{name}"
        return registry.get_sample_value(full, {"client_id": "me", **labels})

    assert value("metrics_request_latency_avg") is None
    assert value("metrics_connection_count") == 0
    driver.producer.send("one", b"a")
    driver.producer.send("one", b"b")
    driver.run()
    assert value("metrics_connection_count") == 1
    assert value("metrics_requests_in_flight") == 0
    size = value("metrics_request_size_max")
    assert size is not None and size > 60
    kinds: dict[str, dict[str, str]] = {"metrics": {}, "node_metrics": {"node_id": "node-0"}}
    for kind, labels in kinds.items():
        assert value(f"{kind}_request_size_avg", **labels) == size
        assert value(f"{kind}_request_latency_max", **labels) == 0
        for name in ("outgoing_byte", "request", "incoming_byte", "response"):
            assert value(f"{kind}_{name}_rate", **labels), name
    assert value("topic_metrics_record_send_rate", topic="one")
    assert value("topic_metrics_byte_rate", topic="one")
    assert value("topic_metrics_compression_rate", topic="one")
    assert value("topic_metrics_record_error_rate", topic="one") == 0
    assert driver.producer.send("one", b"x" * (2 << 20)).exception() is not None
    assert value("topic_metrics_record_error_rate", topic="one")
    assert value("metrics_record_error_rate")
    driver.connections[0].broken = ConnectionResetError("gone")
    driver.run()
    assert value("metrics_connection_count") == 0
    assert value("metrics_connection_close_rate")


def test_waiting_for_memory_is_a_share_of_time() -> None:
    driver = ProducerDriver(buffer_memory=100, linger_ms=10**6, max_block_ms=1000)
    driver.producer.send("one", b"x" * 50)
    driver.silent = True
    assert driver.producer.metrics()["bufferpool-wait-ratio"] == 0
    with pytest.raises(BufferExhaustedError):
        driver.producer.send("one", b"y" * 60)
    assert 0 < driver.producer.metrics()["bufferpool-wait-ratio"] <= 1
