"""Patterns of DStream jobs of Spark 1 and 2, in jobs of our own that are not changed.

Patterns that other modules show already:

- a checkpoint with ``updateStateByKey``, killed and started again: ``test_dstream_faults``
  (``test_a_driver_killed_in_a_batch``), with the old import ``test_submit``
  (``test_a_checkpoint_is_the_same_with_both_imports``);
- a ``messageHandler`` that returns topic, partition, offset, key and value: ``test_dstream``
  (``test_handlers_and_decoders``);
- a module of ``--py-files`` in functions on executors: ``test_submit``
  (``test_the_import_may_be_anywhere``);
- ``createStream`` with a group and a storage level: ``test_dstream``
  (``test_a_group_stream_goes_on_where_it_stopped``), as a word count ``test_submit``
  (``test_the_examples_of_spark_2_run_unchanged``);
- a batch job over ``createRDD``: ``test_dstream`` (``test_ranges_as_an_rdd``), with the old import
  ``test_submit`` (``test_the_import_may_be_anywhere``).
"""

from __future__ import annotations

import sqlite3
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from operator import add, sub
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker, Process
from integration.spark.scene import (
    DEADLINE_S,
    SMALLEST,
    SPARK_WARNINGS,
    committed,
    conf_of,
    direct,
    lines_of,
    new_topic,
    running,
)
from integration.spark.submissions import BARE, submission, texts
from integration.spark.support import missing, produce, spark_conf
from integration.wire import wait_until
from kafka08.producer.partitioners import murmur2_partitioner

if missing():
    pytest.skip(missing(), allow_module_level=True)

from pyspark import SparkContext
from pyspark.streaming import StreamingContext

from kafka08.spark.dstream import KafkaUtils

pytestmark = SPARK_WARNINGS
PER_BATCH = 10  # of a partition
WINDOW_S = 8  # of a job that is killed; four batches
IMPORT = "from pyspark.streaming.kafka import KafkaUtils\n"
FEW_KEPT = """
from kafka08.spark import streams
from kafka08.spark.driver import contexts

streams.StreamRun.kept = contexts.KEPT = 1
"""


@pytest.fixture(scope="module")
def sc() -> Iterator[SparkContext]:
    context = SparkContext(conf=spark_conf())
    context.setLogLevel("OFF")
    yield context
    context.stop()


def fill(broker: Broker, topic: str, partition: int, pairs: list[tuple[str, str]]) -> None:
    produce(broker, topic, partition, [(key.encode(), value.encode()) for key, value in pairs])


# --- several batches, several streams


def test_a_window_with_an_inverse_function(
    sc: SparkContext, broker: Broker, tmp_path: Path
) -> None:
    """Four batches of messages go through windows of three; words leave when their count is 0."""
    topic = new_topic(broker, 2)
    words = [[f"w{n // 3}" for n in range(40)], [f"w{n % 9}" for n in range(40)]]
    for partition, each in enumerate(words):
        fill(broker, topic, partition, [("", word) for word in each])
    windows: list[dict[str, int]] = []

    def define(ssc: StreamingContext) -> None:
        ssc.checkpoint(str(tmp_path / "checkpoint"))
        stream = KafkaUtils.createDirectStream(ssc, [topic], {**direct(broker), **SMALLEST})
        counts = stream.map(lambda pair: (pair[1], 1)).reduceByKeyAndWindow(
            add, sub, 3, 1, filterFunc=lambda pair: pair[1] > 0
        )
        counts.foreachRDD(lambda rdd: windows.append(dict(rdd.collect())))

    with conf_of(sc, kafka_maxRatePerPartition=PER_BATCH), running(sc, define, seconds=1):
        wait_until("an empty window", DEADLINE_S, lambda: windows and windows[-1] == {})
    assert windows[:7] == [
        Counter(w for each in words for w in each[max(last - 3, 0) * PER_BATCH : last * PER_BATCH])
        for last in range(1, 8)
    ]
    assert windows[6] == {} and all(window == {} for window in windows[7:])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["direct", "group"])
def test_windows_of_a_job_that_was_killed(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None], kind: str
) -> None:
    """Every window is the sum of its batches, those of before the kill too. They are known because
    the window needs them: the job lowers how many are in any case."""
    topic = new_topic(broker, 2)
    program = texts(tmp_path / "jobs", "old_windows")
    text = program.read_text()
    assert IMPORT in text
    program.write_text(text.replace(IMPORT, IMPORT + FEW_KEPT))
    where = broker.address if kind == "direct" else broker.zookeeper
    job = submission(
        tmp_path / "log",
        program,
        *(tmp_path / "checkpoint", tmp_path, kind, where, topic, WINDOW_S / 4, 4),
        master="local[2]",
    )

    def send(first: int, end: int) -> None:
        for partition in range(2):
            pairs = [("", f"w{n % 7} {partition}-{n}") for n in range(first, end)]
            fill(broker, topic, partition, pairs)

    def noted(name: str) -> dict[int, list[str]]:
        """Time -> words, of the last run if both runs had it."""
        lines = [line.split() for line in lines_of(tmp_path / name)]
        return {int(time): words for time, *words in lines}

    def read() -> int:
        return sum(map(len, noted("batches").values()))

    send(0, 40)
    (tmp_path / "hold").write_text("0-25")
    start(job, launch)
    wait_for(job, "the third batch", lambda: read() == 60)
    if kind == "group":
        first = {0: 20, 1: 20}
        wait_for(job, "offsets", lambda: committed(broker, f"windows-{topic}", topic) == first)
    job.kill()
    (tmp_path / "hold").unlink()
    send(40, 50)
    job.spawn()
    wait_for(job, "the rest", lambda: read() == 100)
    last = max(time for time, names in noted("batches").items() if names)
    wait_for(job, "an empty window", lambda: max(noted("windows")) >= last + 1000 * WINDOW_S)
    finish(job, tmp_path / "stop")
    batches, windows = noted("batches"), noted("windows")
    names = sorted(name for each in batches.values() for name in each)
    assert names == sorted(f"{partition}-{n}" for partition in range(2) for n in range(50))
    for time, found in windows.items():
        its = [batches.get(time - 250 * WINDOW_S * back, []) for back in range(4)]
        counts = Counter(int(name.partition("-")[2]) % 7 for each in its for name in each)
        assert found == [f"w{word}:{counts[word]}" for word in sorted(counts)], time
    assert windows[last + 1000 * WINDOW_S] == []


def test_two_topics_by_their_keys(sc: SparkContext, broker: Broker) -> None:
    """cogroup and join of two direct streams, whose topics differ in their partitions."""
    customers = {"orders": 5, "payments": 7}
    topics = {"orders": new_topic(broker, 2), "payments": new_topic(broker, 3)}
    sent: dict[str, list[list[tuple[str, str]]]] = {}
    for name, partitions in (("orders", 2), ("payments", 3)):
        sent[name] = [
            [(f"c{n % customers[name]}", f"{name}-{p}-{n}") for n in range(2 * PER_BATCH)]
            for p in range(partitions)
        ]
        for partition, pairs in enumerate(sent[name]):
            fill(broker, topics[name], partition, pairs)
    grouped: list[dict[str, list[list[str]]]] = []
    joined: list[list[tuple[str, tuple[str, str]]]] = []

    def define(ssc: StreamingContext) -> None:
        orders, payments = (
            KafkaUtils.createDirectStream(ssc, [topic], {**direct(broker), **SMALLEST})
            for topic in topics.values()
        )
        groups = orders.cogroup(payments, 4).mapValues(lambda sides: [sorted(s) for s in sides])
        groups.foreachRDD(lambda rdd: grouped.append(dict(rdd.collect())))
        orders.join(payments).foreachRDD(lambda rdd: joined.append(sorted(rdd.collect())))

    with conf_of(sc, kafka_maxRatePerPartition=PER_BATCH), running(sc, define, seconds=1):
        wait_until("a batch of nothing", DEADLINE_S, lambda: joined and joined[-1] == [])
    for batch in range(2):
        first = batch * PER_BATCH
        sides = [
            [pair for pairs in sent[name] for pair in pairs[first : first + PER_BATCH]]
            for name in ("orders", "payments")
        ]
        assert grouped[batch] == {
            key: [sorted(value for k, value in side if k == key) for side in sides]
            for key in {key for side in sides for key, _ in side}
        }
        assert joined[batch] == sorted(
            (key, (order, payment))
            for key, order in sides[0]
            for k, payment in sides[1]
            if k == key
        )
    assert not any(grouped[2:]) and not any(joined[2:])


# --- producers in tasks


@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("kafka", {"master": "local[2]"}),
        pytest.param(
            "kafka08.producer.kafka_producer",
            {"master": "local-cluster[2,1,1024]", "python": BARE},
            marks=pytest.mark.slow,
        ),
    ],
    ids=["kafka-python", "kafka08-bare-cluster"],
)
def test_a_producer_in_each_task(
    broker: Broker,
    tmp_path: Path,
    launch: Callable[[Process], None],
    module: str,
    options: dict[str, object],
) -> None:
    """Executors of a bare Python have kafka08 and its producer from the zip of the submission."""
    topic, target = new_topic(broker, 2), new_topic(broker, 3)
    program = texts(tmp_path / "jobs", "old_copies")
    text = program.read_text()
    assert "from kafka import KafkaProducer\n" in text
    program.write_text(text.replace("from kafka import", f"from {module} import"))
    expected: dict[tuple[int, bytes], list[bytes]] = defaultdict(list)
    stop = tmp_path / "stop"
    job = submission(tmp_path / "out", program, broker.address, topic, target, stop, **options)

    def send(first: int) -> None:
        for partition in range(2):
            pairs = [(f"k{partition}{n % 4}", f"v{n}") for n in range(first, first + 20)]
            fill(broker, topic, partition, pairs)
            for key, value in pairs:
                place = murmur2_partitioner(key.encode(), 3), key.encode()
                expected[place].append(value.upper().encode())

    def copied() -> dict[tuple[int, bytes | None], list[bytes | None]]:
        """(partition, key) -> values, in their order."""
        found = defaultdict(list)
        with broker.wire() as wire:
            for partition in range(3):
                for each in wire.read_all(target, partition):
                    found[partition, each.key].append(each.value)
        return found

    def wait_for_all() -> None:
        count = sum(map(len, expected.values()))
        wait_for(job, "all copies", lambda: sum(map(len, copied().values())) >= count)

    send(0)
    start(job, launch)
    wait_for_all()
    send(20)
    wait_for_all()
    finish(job, stop)
    assert copied() == expected


def start(job: Process, launch: Callable[[Process], None]) -> None:
    job.spawn()
    launch(job)


def wait_for(job: Process, what: str, probe: Callable[[], object]) -> None:
    def there() -> object:
        assert job.alive, job.log[-4000:]
        return probe()

    wait_until(what, DEADLINE_S, there)


def finish(job: Process, stop: Path) -> None:
    stop.touch()
    assert job.exit_code(DEADLINE_S) == 0, job.log[-4000:]


# --- offsets kept by hand


class ByHand:
    """A topic of two partitions, and a job that keeps its offsets of it in a place of its own.

    ``word(partition, offset)`` is sent, with no key. The job adds a line for each range to the
    file ``notes`` of its directory before it stores offsets, and waits there while there is a file
    ``hold``.
    """

    def __init__(
        self, broker: Broker, directory: Path, notes: str, word: Callable[[int, int], str]
    ) -> None:
        self.broker = broker
        self.topic = new_topic(broker, 2)
        self.out = directory
        self.notes = directory / notes
        self.sent = 0
        self._word = word

    def send(self, count: int) -> None:
        """``count`` messages to each partition."""
        for partition in range(2):
            offsets = range(self.sent, self.sent + count)
            words = [(None, self._word(partition, offset).encode()) for offset in offsets]
            produce(self.broker, self.topic, partition, words)
        self.sent += count

    def kill_in_a_batch(
        self, job: Process, launch: Callable[[Process], None], stored: Callable[[], dict[int, int]]
    ) -> None:
        """Kill ``job`` between the output of a batch and its offsets, when others are complete and
        others are to come, and let it go on to the end of the topic.

        ``stored()``: partition -> offset. The second run begins where the first one stood.
        """
        self.send(15)
        start(job, launch)
        wait_for(job, "the first batches", lambda: stored() == {0: 15, 1: 15})
        done = len(lines_of(self.notes))
        (self.out / "hold").touch()
        self.send(15)
        wait_for(job, "a batch", lambda: len(lines_of(self.notes)) > done)
        job.kill()
        assert stored() == {0: 15, 1: 15}
        killed = len(lines_of(self.notes))
        (self.out / "hold").unlink()
        self.send(5)
        job.spawn()
        wait_for(job, "the end", lambda: stored() == {0: self.sent, 1: self.sent})
        finish(job, self.out / "stop")
        lines = lines_of(self.notes)
        assert offsets_of(lines[:done]) == {p: list(range(15)) for p in range(2)}
        assert offsets_of(lines[killed:]) == {p: list(range(15, self.sent)) for p in range(2)}


def offsets_of(lines: list[str]) -> dict[int, list[int]]:
    """Of lines with partition, start and end: partition -> offsets in the order of the lines."""
    found: dict[int, list[int]] = defaultdict(list)
    for line in lines:
        partition, first, end = map(int, line.split())
        found[partition] += range(first, end)
    return found


def test_offsets_in_zookeeper_by_hand(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """The output is by partition and offset: what the killed batch wrote is written again."""
    kept = ByHand(broker, tmp_path, "written", lambda partition, offset: f"v{partition}-{offset}")
    group = f"g-{uuid.uuid4().hex[:8]}"
    messages = tmp_path / "messages"
    messages.mkdir()
    job = submission(
        tmp_path / "log",
        texts(tmp_path / "jobs", "old_offsets_in_zookeeper"),
        *(broker.zookeeper, group, tmp_path, broker.address, kept.topic),
        master="local[2]",
    )
    kept.kill_in_a_batch(job, launch, lambda: committed(broker, group, kept.topic))
    found = {path.name: path.read_text() for path in messages.iterdir()}
    assert found == {f"{p}-{n}": f"v{p}-{n}" for p in range(2) for n in range(35)}
    stored = offsets_of(lines_of(tmp_path / "stored"))
    assert stored == {partition: list(range(35)) for partition in range(2)}


def test_offsets_in_a_database_by_hand(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """The counts and the offsets are in one transaction, which the kill takes back."""
    kept = ByHand(broker, tmp_path, "counted", lambda partition, offset: f"all p{partition}")
    job = submission(
        tmp_path / "log",
        texts(tmp_path / "jobs", "old_offsets_in_database"),
        *(tmp_path, broker.address, kept.topic),
        master="local[2]",
    )

    def rows(query: str) -> dict[Any, int]:
        """Nothing before the job has made its tables."""
        with closing(sqlite3.connect(tmp_path / "words.db")) as database:
            try:
                return dict(database.execute(query).fetchall())
            except sqlite3.OperationalError:
                return {}

    kept.kill_in_a_batch(job, launch, lambda: rows("SELECT partition, next FROM offsets"))
    assert rows("SELECT word, count FROM words") == {"all": 70, "p0": 35, "p1": 35}
