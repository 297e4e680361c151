"""A join with windows over two topics, killed and restarted, against a batch over the same log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker, Process
from integration.spark.scene import DEADLINE_S, SPARK_WARNINGS, new_topic
from integration.spark.support import driver, missing, produce
from integration.wire import wait_until

if missing():
    pytest.skip(missing(), allow_module_level=True)
pytest.importorskip("pyarrow")

from pyspark.sql import SparkSession

from integration.spark.jobs.deliveries import deliveries
from integration.spark.sessions import utc_session

pytestmark = [pytest.mark.slow, *SPARK_WARNINGS]
JOB = Path(__file__).parent / "jobs" / "deliveries.py"
SKUS = 3
LATE, END = "late", "end"  # articles: of rows that come too late; of rows that move time on


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with utc_session() as session:
        yield session


def event(sku: str, minute: int, quantity: int = 0) -> dict[str, object]:
    """Minutes from nine o'clock on."""
    clock = f"{9 + minute // 60:02}:{minute % 60:02}"
    return {"sku": sku, "quantity": quantity or minute % 7 + 1, "time": f"2014-07-01T{clock}:00Z"}


def shuffled(first: int, last: int) -> Iterable[dict[str, object]]:
    """One a minute and article, not in the order of their times."""
    for minute in range(first, last):
        yield from (event(f"s{n}", minute + 9 - 2 * (minute % 10)) for n in range(SKUS))


class Scene:
    def __init__(self, broker: Broker, directory: Path, launch: Callable[[Process], None]) -> None:
        self.broker = broker
        self.out = directory / "out"
        self.out.mkdir()
        self.topics = new_topic(broker), new_topic(broker)
        self._directory = directory
        self._launch = launch
        self._starts = 0
        self.process = self.start()

    def start(self) -> Process:
        self._starts += 1
        directory = self._directory / f"job-{self._starts}"
        arguments = (self._directory / "checkpoint", self.out, self.broker.address, *self.topics)
        self.process = driver("deliveries", directory, JOB, *arguments)
        self._launch(self.process)
        return self.process

    def send(self, sales: Iterable[object], shipments: Iterable[object]) -> None:
        """Each in one set, which no batch cuts in two: what is late is so by its time alone."""
        for topic, values in zip(self.topics, (sales, shipments), strict=True):
            produce(self.broker, topic, 0, [(None, json.dumps(v).encode()) for v in values])

    def files(self, name: str) -> dict[int, Any]:
        paths = [path for path in self.out.glob(f"{name}-*") if path.suffix != ".tmp"]
        return {int(path.name.partition("-")[2]): json.loads(path.read_text()) for path in paths}

    def wait_for_time(self, minute: int) -> None:
        """Wait until the watermark has this value: all earlier data has been processed then."""
        clock = str(event("", minute)["time"])[:16]

        def reached() -> bool:
            assert self.process.alive, self.process.log[-3000:]
            return any(each["watermark"] >= clock for each in self.files("progress").values())

        wait_until(f"watermark {clock}", DEADLINE_S, reached)

    def kill_in_the_batch_of(self, sales: Iterable[object], shipments: Iterable[object]) -> None:
        """Killed when the first batch with some of these has put out its rows, not ended."""
        (self.out / "hold").touch()
        before = set(self.files("batch"))
        self.send(sales, shipments)
        wait_until("a batch", DEADLINE_S, lambda: set(self.files("batch")) - before)
        self.process.kill()
        held = max(self.files("batch"))
        assert held not in self.files("progress")
        (self.out / "hold").unlink()
        self.start()


@pytest.mark.scenario("spark-28")
def test_a_killed_join_with_windows_equals_a_batch_less_what_was_dropped(
    spark: SparkSession,
    broker: Broker,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    scene = Scene(broker, tmp_path, launch)
    scene.send(shuffled(60, 100), shuffled(65, 100))
    scene.wait_for_time(85)
    late = [event(LATE, minute) for minute in (10, 11, 12)]
    # The watermark is at 89 minutes: what is later than that has its window open.
    in_time = [event("s1", 95, 50), event("s2", 91, 60)]
    scene.kill_in_the_batch_of(
        [*late, *in_time, *shuffled(100, 120)], [*late[:2], *in_time, *shuffled(100, 120)]
    )
    scene.wait_for_time(105)
    scene.kill_in_the_batch_of(shuffled(120, 150), shuffled(120, 150))
    scene.send(shuffled(150, 170), shuffled(150, 170))
    scene.wait_for_time(155)
    # Late again, of an article that is in the output.
    gone = [event("s0", 70, 100), event("s0", 75, 100)]
    scene.send(gone[:1], gone[1:])
    end = [event(END, 400)]
    scene.send(end, end)
    scene.wait_for_time(390)
    (scene.out / "stop").touch()
    assert scene.process.exit_code(DEADLINE_S) == 0, scene.process.log[-3000:]
    streamed = [tuple(row) for rows in scene.files("batch").values() for row in rows]
    dropped = sum(each["dropped"] for each in scene.files("progress").values())
    assert dropped == len(late) + len(late[:2]) + len(gone)

    def in_batch(without: list[dict[str, object]]) -> list[tuple[Any, ...]]:
        rows = spark.read.format("kafka08").option("kafka.bootstrap.servers", broker.address)
        tables = []
        for topic in scene.topics:
            table = rows.option("subscribe", topic).load()
            left_out = [json.dumps(each) for each in without]
            values = table["value"].cast("string")
            tables.append(table.where(~values.isin([*left_out, ""])))
        found = [tuple(row) for row in deliveries(*tables).collect()]
        return sorted(row for row in found if row[1] != END)

    everything = in_batch([])
    assert sorted(streamed) != everything
    assert {row[1] for row in everything} == {LATE, *(f"s{n}" for n in range(SKUS))}
    assert sorted(streamed) == in_batch([*late, *gone])
