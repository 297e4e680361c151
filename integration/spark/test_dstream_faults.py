"""DStreams whose drivers, executors, leaders and fellow members are killed or go away."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker, Process
from integration.spark.scene import (
    DEADLINE_S,
    SMALLEST,
    SPARK_WARNINGS,
    Seen,
    Servers,
    addresses,
    committed,
    conf_of,
    direct,
    lines_of,
    new_topic,
    owned,
    owners,
    partition_state,
    replicated_topic,
    running,
    send,
    text_of,
)
from integration.spark.support import driver, missing, spark_conf
from integration.wire import wait_until

if missing():
    pytest.skip(missing(), allow_module_level=True)

from pyspark import SparkContext
from pyspark.streaming import StreamingContext

from kafka08.common import TopicPartition
from kafka08.producer.config import ProducerConfig
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.producer import Producer
from kafka08.spark.dstream import KafkaUtils, OffsetRange
from kafka08.spark.files.offset_log import DIRECTORY
from kafka08.spark.params import SourceParams

pytestmark = [pytest.mark.slow, *SPARK_WARNINGS]
JOBS = Path(__file__).parent / "jobs"
INTERVAL_S = 1.0
PER_BATCH = 50  # of a partition: what the job's rate limit allows in an interval


@pytest.fixture(scope="module")
def sc() -> Iterator[SparkContext]:
    context = SparkContext(conf=spark_conf())
    context.setLogLevel("OFF")
    yield context
    context.stop()


# --- the driver, an executor


class Summing:
    """The job ``summing`` over a topic of two partitions."""

    def __init__(
        self,
        broker: Broker,
        directory: Path,
        launch: Callable[[Process], None],
        master: str = "local[2,4]",
        seconds: float = INTERVAL_S,
    ) -> None:
        self.broker = broker
        self.topic = new_topic(broker, 2)
        self.out = directory / "out"
        self.out.mkdir()
        self._directory = directory
        self._launch = launch
        self._arguments = (
            directory / "checkpoint",
            self.out,
            broker.address,
            self.topic,
            master,
            seconds,
        )
        self._sent = [0, 0]
        self.process = self.start()

    def start(self) -> Process:
        name = f"summing-{uuid.uuid4().hex[:4]}"
        process = driver(name, self._directory / name, JOBS / "summing.py", *self._arguments)
        self._launch(process)
        self.process = process
        return process

    def send(self, *counts: int) -> None:
        for partition, count in enumerate(counts):
            first = self._sent[partition]
            for low in range(first, first + count, 200):
                send(self.broker, self.topic, partition, range(low, min(low + 200, first + count)))
            self._sent[partition] += count

    def wait_for_sum(self) -> None:
        expected = str(sum(sum(range(count)) for count in self._sent))

        def there() -> bool:
            assert self.process.alive, self.process.log[-3000:]
            return text_of(self.out / "sum") == expected

        wait_until(f"a sum of {expected}", 2 * DEADLINE_S, there)

    @property
    def planned(self) -> list[str]:
        """Ranges that an output began with."""
        return lines_of(self.out / "planned")

    def logged(self) -> dict[int, list[str]]:
        """The offset log: batch -> ranges that are not empty, named as in ``planned``."""
        (directory,) = (self._directory / "checkpoint" / DIRECTORY).iterdir()
        found = {}
        for path in directory.iterdir():
            if path.name.isdecimal():
                ranges = json.loads(path.read_bytes())["ranges"]
                found[int(path.name)] = [f"{t}-{p}-{s}-{e}" for t, p, s, e in ranges if s < e]
        return found

    def finish(self) -> None:
        """Every message once, in files of no more than a batch may have."""
        self.wait_for_sum()
        (self.out / "stop").touch()
        assert self.process.exit_code(DEADLINE_S) == 0, self.process.log[-3000:]
        outputs = [
            [int(word) for word in path.read_text().split()]
            for path in self.out.glob(f"{self.topic}-*")
            if path.suffix != ".tmp"
        ]
        expected = [value for count in self._sent for value in range(count)]
        assert sorted(value for values in outputs for value in values) == sorted(expected)
        assert max(map(len, outputs)) <= PER_BATCH


@pytest.fixture
def summing(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> Callable[..., Summing]:
    return lambda **options: Summing(broker, tmp_path, launch, **options)


@pytest.mark.scenario("spark-9")
def test_a_driver_killed_in_a_batch(summing: Callable[..., Summing]) -> None:
    job = summing()
    job.send(60, 60)
    job.wait_for_sum()
    (job.out / "hold").touch()
    before = len(job.planned)
    job.send(30)
    wait_until("a batch", DEADLINE_S, lambda: len(job.planned) > before)
    job.process.kill()
    pending = job.planned[before:]
    (job.out / "hold").unlink()
    job.send(30)
    job.start()
    job.finish()
    assert set(pending) <= set(job.planned[before + len(pending) :])


@pytest.mark.scenario("spark-10")
def test_a_driver_killed_between_offset_log_and_checkpoint(
    summing: Callable[..., Summing],
) -> None:
    job = summing()
    job.send(60, 60)
    job.wait_for_sum()
    before = set(job.planned)
    (job.out / "die").touch()
    job.send(30)
    wait_until("its death", DEADLINE_S, lambda: not job.process.alive)
    assert set(job.planned) == before, "the batch has not run"
    logged = job.logged()
    last = max(logged)
    pending = logged[last]
    assert pending
    (job.out / "die").unlink()
    job.send(30)  # if the batch were planned again, it would have more
    job.start()
    job.finish()
    assert set(pending) <= set(job.planned)
    assert job.logged()[last] == pending


@pytest.mark.scenario("spark-11")
def test_a_driver_that_was_down_for_thirty_intervals(summing: Callable[..., Summing]) -> None:
    job = summing()
    job.send(60, 60)
    job.wait_for_sum()
    job.process.kill()
    down = max(job.logged())
    job.send(600, 600)
    time.sleep(30 * INTERVAL_S)
    up = round(time.time() * 1000)
    before = len(job.planned)
    job.start()
    job.finish()
    sizes = [int(name.split("-")[-1]) - int(name.split("-")[-2]) for name in job.planned[before:]]
    assert len(sizes) >= 24
    assert max(sizes) == PER_BATCH
    missed = [batch for batch in job.logged() if down < batch < up]
    assert len(missed) >= 29, "each interval has its batch"


@pytest.mark.scenario("spark-12")
def test_an_executor_killed_in_a_batch(summing: Callable[..., Summing]) -> None:
    job = summing(master="local-cluster[2,1,1024]", seconds=3)
    job.send(40, 40)
    job.wait_for_sum()

    def tasks() -> list[list[int]]:
        """Partition, attempt, executor."""
        return [list(map(int, line.split())) for line in lines_of(job.out / "tasks")]

    before = len(tasks())
    (job.out / "hold-tasks").touch()
    job.send(20, 20)
    wait_until("a task", DEADLINE_S, lambda: len(tasks()) > before)
    partition, attempt, executor = tasks()[before]
    assert attempt == 0
    os.kill(executor, signal.SIGKILL)
    again = [partition, 1]
    wait_until("a retry", DEADLINE_S, lambda: again in [each[:2] for each in tasks()[before:]])
    (job.out / "hold-tasks").unlink()
    job.send(30, 30)
    job.finish()
    assert max(Counter(job.planned).values()) == 1, "no output was repeated"


# --- leaders


@pytest.mark.scenario("spark-13")
def test_a_leader_killed_in_a_batch(sc: SparkContext, servers: Servers, kind: str) -> None:
    brokers = servers.cluster(kind, 3)
    topic = replicated_topic(brokers[0], [0, 1])
    config = ProducerConfig(
        metadata_broker_list=addresses(brokers),
        request_required_acks=-1,
        message_send_max_retries=100,
    )
    seen = Seen()
    killing, reached, elected = threading.Event(), threading.Event(), threading.Event()

    def collect(rdd: Any) -> None:
        (found,) = rdd.offsetRanges()
        if killing.is_set() and found.fromOffset < found.untilOffset:
            # Planned with the leader that dies now.
            reached.set()
            elected.wait(DEADLINE_S)
        seen.values.extend(int(value) for _, value in rdd.collect())

    def define(ssc: StreamingContext) -> None:
        params = {"metadata.broker.list": config.metadata_broker_list, **SMALLEST}
        stream = KafkaUtils.createDirectStream(ssc, [topic], params)
        stream.foreachRDD(seen.offsets)
        stream.foreachRDD(collect)

    with (
        conf_of(sc, kafka_maxRatePerPartition=40),
        running(sc, define, INTERVAL_S),
        Producer(config) as producer,
    ):
        producer.send(*[KeyedMessage(topic, b"%d" % number) for number in range(200)])
        seen.wait(50)
        killing.set()
        producer.send(*[KeyedMessage(topic, b"%d" % number) for number in range(200, 220)])
        assert reached.wait(DEADLINE_S)
        brokers[0].kill()
        wait_until(
            "a new leader",
            DEADLINE_S,
            lambda: partition_state(brokers[1], topic).get("leader") == 1,
        )
        killing.clear()
        elected.set()
        for number in range(220, 240):
            producer.send(KeyedMessage(topic, b"%d" % number))
        seen.wait(240)
    assert seen.values == list(range(240))
    assert_continuous(seen)


def assert_continuous(seen: Seen) -> None:
    assert all(before[1] == after[0] for before, after in pairwise(seen.spans))


@pytest.fixture
def impatient(sc: SparkContext) -> Iterator[None]:
    with conf_of(sc, kafka_maxRetries=1):
        yield


@pytest.mark.scenario("spark-13")
def test_a_dying_broker_does_not_end_a_default_job(
    servers: Servers, kind: str, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """``local[2]``, where a task has one attempt, and no settings."""
    brokers = servers.cluster(kind, 3)
    topic = replicated_topic(brokers[0], [0, 1])
    count = tmp_path / "count"
    args = (addresses(brokers), topic, count)
    job = driver("counting", tmp_path / "job", JOBS / "counting.py", *args)
    launch(job)

    def counted(least: int) -> None:
        def there() -> bool:
            assert job.alive, job.log[-3000:]
            return int(text_of(count) or 0) >= least

        wait_until(f"{least} counted", DEADLINE_S, there)

    config = ProducerConfig(
        metadata_broker_list=addresses(brokers),
        request_required_acks=-1,
        message_send_max_retries=100,
    )
    with Producer(config) as producer:
        producer.send(*[KeyedMessage(topic, b"w") for _ in range(1000)])
        counted(1)
        producer.send(*[KeyedMessage(topic, b"w") for _ in range(1000)])
        brokers[0].kill()
        counted(2000)
        # A retry may have sent some of these twice: the log says how many there are.
        producer.send(*[KeyedMessage(topic, b"w") for _ in range(1000)])
    with SourceParams(((("127.0.0.1", brokers[1].port)),)).offset_reader() as reader:
        (end,) = reader.latest([TopicPartition(topic, 0)]).values()
    assert end >= 3000
    counted(end)
    Path(f"{count}.stop").touch()
    assert job.exit_code(DEADLINE_S) == 0, job.log[-3000:]
    assert int(count.read_text()) == end


@pytest.mark.usefixtures("impatient")
@pytest.mark.scenario("spark-14")
def test_a_leader_that_is_away_fails_batches_and_loses_nothing(
    sc: SparkContext, servers: Servers, kind: str
) -> None:
    """Longer than spark.streaming.kafka.maxRetries have patience; another broker answers."""
    other, leader = servers.cluster(kind, 2)
    topic = f"t-{uuid.uuid4().hex[:8]}"
    leader.create_topic(topic, replicas=[leader.broker_id])
    seen = Seen()
    ssc = StreamingContext(sc, INTERVAL_S)
    params = {"metadata.broker.list": addresses([other, leader])}
    stream = KafkaUtils.createDirectStream(ssc, [topic], params)
    stream.foreachRDD(seen.offsets)
    stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)
    ssc.start()
    try:
        send(leader, topic, 0, range(10))
        seen.wait(10)
        leader.kill()
        gone = rf"No leader for \[{topic},0\]|:{leader.port}, leader of \[{topic},0\]"
        with pytest.raises(Exception, match=gone):
            ssc.awaitTerminationOrTimeout(DEADLINE_S)
        planned = len(seen.ranges)
        threading.Event().wait(4 * INTERVAL_S)
        assert all(first == last == 10 for first, last in seen.spans[planned:])
        leader.start()
        leader.wait_for_leader(topic)
        send(leader, topic, 0, range(10, 20))
        seen.wait(20)
    finally:
        ssc.stop(False, False)
    assert seen.values == list(range(20))
    assert_continuous(seen)


@pytest.mark.usefixtures("impatient")
@pytest.mark.scenario("spark-14", "spark-input-5")
def test_brokers_that_are_away_fail_batches_and_lose_nothing(
    sc: SparkContext, servers: Servers
) -> None:
    (broker,) = servers.cluster("ours", 1)
    topic = new_topic(broker)
    seen = Seen()
    ssc = StreamingContext(sc, INTERVAL_S)
    stream = KafkaUtils.createDirectStream(ssc, [topic], direct(broker))
    stream.foreachRDD(seen.offsets)
    stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)
    ssc.start()
    try:
        send(broker, topic, 0, range(10))
        seen.wait(10)
        broker.stop()
        with pytest.raises(Exception, match=named(broker)):
            ssc.awaitTerminationOrTimeout(DEADLINE_S)
        broker.start()
        broker.wait_for_leader(topic)
        send(broker, topic, 0, range(10, 20))
        seen.wait(20)
    finally:
        ssc.stop(False, False)
    assert seen.values == list(range(20))
    assert_continuous(seen)


def named(broker: Broker) -> str:
    return rf"metadata\.broker\.list has value {broker.address}: "


@pytest.mark.scenario("spark-input-5")
def test_brokers_that_die_before_a_job_and_stay_away(sc: SparkContext, servers: Servers) -> None:
    (broker,) = servers.cluster("ours", 1)
    topic = new_topic(broker)
    send(broker, topic, 0, range(10))
    rdd = KafkaUtils.createRDD(sc, direct(broker), [OffsetRange(topic, 0, 0, 10)])
    broker.kill()
    begin = time.monotonic()
    with pytest.raises(Exception, match=named(broker)):
        rdd.collect()
    assert time.monotonic() - begin < DEADLINE_S


# --- groups


@pytest.mark.scenario("spark-18")
def test_two_drivers_share_a_group(
    either: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    topic, group = new_topic(either, 4), uuid.uuid4().hex
    notes = [tmp_path / "a", tmp_path / "b"]
    stop = tmp_path / "stop"

    def start(number: int) -> Process:
        args = (either.zookeeper, group, topic, notes[number], stop)
        process = driver(f"member{number}", tmp_path / f"m{number}", JOBS / "member.py", *args)
        launch(process)
        return process

    def to_all(first: int, last: int) -> None:
        for partition in range(4):
            send(either, topic, partition, range(100 * partition + first, 100 * partition + last))

    def wait_for_all(last: int) -> None:
        wanted = {100 * p + i for p in range(4) for i in range(last)}
        wait_until("all", DEADLINE_S, lambda: set(noted(notes)) == wanted)

    def shares() -> list[int]:
        return sorted(owners(either, group, topic).values())

    first = start(0)
    wait_until("one owner", DEADLINE_S, lambda: shares() == [4])
    (name,) = owners(either, group, topic)
    to_all(0, 50)
    second = start(1)
    wait_until("two owners", DEADLINE_S, lambda: shares() == [2, 2])
    to_all(50, 80)
    wait_for_all(80)
    assert lines_of(notes[1]), "the second had a share"
    everything = dict.fromkeys(range(4), 80)
    wait_until("commits", DEADLINE_S, lambda: committed(either, group, topic) == everything)
    its = [p for p, owner in owned(either, group, topic).items() if owner != name]
    assert len(its) == 2
    # The second dies in a batch that has put out what it read and is not committed.
    done = len(lines_of(notes[1]))
    Path(f"{notes[1]}.hold").touch()
    to_all(80, 90)
    wait_until("a batch", DEADLINE_S, lambda: len(lines_of(notes[1])) > done)
    # The first must not lose its partitions between a batch and its commit, or it repeats it too.
    after = {partition: 80 if partition in its else 90 for partition in range(4)}
    wait_until("commits", DEADLINE_S, lambda: committed(either, group, topic) == after)
    second.kill()
    wait_until("one owner again", DEADLINE_S, lambda: shares() == [4])
    to_all(90, 100)
    wait_for_all(100)
    stop.touch()
    assert first.exit_code(DEADLINE_S) == 0
    assert committed(either, group, topic) == dict.fromkeys(range(4), 100)
    repeated = [value for value, count in Counter(noted(notes)).items() if count > 1]
    assert sorted(repeated) == sorted(map(int, lines_of(notes[1])[done:])), "not committed"
    assert {value // 100 for value in repeated} <= set(its)


@pytest.mark.scenario("spark-input-5")
def test_a_group_whose_brokers_are_away_goes_on_with_them(
    sc: SparkContext, servers: Servers
) -> None:
    (broker,) = servers.cluster("ours", 1)
    topic = new_topic(broker)
    send(broker, topic, 0, range(10))
    seen = Seen()
    ssc = StreamingContext(sc, INTERVAL_S)
    group = uuid.uuid4().hex
    stream = KafkaUtils.createStream(ssc, broker.zookeeper, group, {topic: 1}, dict(SMALLEST))
    stream.map(lambda pair: int(pair[1])).foreachRDD(seen.collect)
    ssc.start()
    try:
        seen.wait(10)
        wait_until("commit", DEADLINE_S, lambda: committed(broker, group, topic) == {0: 10})
        broker.kill()
        with pytest.raises(Exception, match=rf"list of brokers in {broker.zookeeper} has value "):
            ssc.awaitTerminationOrTimeout(DEADLINE_S)
        broker.start()
        broker.wait_for_leader(topic)
        send(broker, topic, 0, range(10, 20))
        seen.wait(20)
    finally:
        ssc.stop(False, False)
    assert seen.values == list(range(20))


def noted(notes: list[Path]) -> list[int]:
    return [int(word) for path in notes for word in text_of(path).split()]
