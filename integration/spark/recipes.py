"""Jobs of docs/examples as users submit them, topics that are filled meanwhile, and kills.

Knows nothing of what the jobs write.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from integration.harness import HOME, Broker, Process
from integration.spark.scene import batches_in, messages_committed
from integration.spark.standalone import SPARK_HOME
from integration.spark.support import produce
from integration.wire import wait_until

EXAMPLES = HOME / "docs" / "examples"
DEADLINE_S = 300
PARTITIONS = 2
KEYS = 20
SET = 10  # messages at a time and partition
PAUSE_S = 0.05
Row = tuple[int, int, bytes, bytes]  # partition, offset, key, value


class Feed:
    """Messages for a topic, until it is stopped: numbers with keys that stay in their partition."""

    def __init__(self, broker: Broker) -> None:
        self.topic = f"fed-{uuid.uuid4().hex[:6]}"
        broker.create_topic(self.topic, PARTITIONS)
        self._broker = broker
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.topic)
        self._numbers = 0
        self._error: BaseException | None = None

    def start(self) -> Feed:
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            while not self._end.wait(PAUSE_S):
                numbers = range(self._numbers, self._numbers + SET)
                for part in range(PARTITIONS):
                    keys = [n % (KEYS // PARTITIONS) * PARTITIONS + part for n in numbers]
                    records = [(b"k%d" % k, b"%d" % n) for k, n in zip(keys, numbers, strict=True)]
                    produce(self._broker, self.topic, part, records)
                self._numbers = numbers.stop
        except BaseException as error:
            self._error = error

    @property
    def sent(self) -> int:
        """Messages so far. Fails if no more come."""
        assert self._thread.is_alive(), self._error
        return self._numbers * PARTITIONS

    def stop(self) -> None:
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join()

    def rows(self) -> list[Row]:
        """All that is in the topic, in order."""
        self.stop()
        assert self._error is None
        with self._broker.wire() as wire:
            return [
                (partition, each.offset, each.key or b"", each.value or b"")
                for partition in range(PARTITIONS)
                for each in wire.read_all(self.topic, partition)
            ]


class Release(NamedTuple):
    """A PySpark, by its interpreter and directory, with the jars that jobs need."""

    python: Path
    home: Path
    jars: tuple[Path, ...] = ()

    def submit(self, master: str, *options: str) -> list[str]:
        settings = [
            "ui.enabled=false",
            "driver.host=127.0.0.1",
            "driver.memory=512m",
            "executor.memory=512m",
            "sql.shuffle.partitions=2",
            f"pyspark.python={self.python}",
        ]
        command = ["env", f"SPARK_HOME={self.home}", str(self.home / "bin" / "spark-submit")]
        command += [f"--master={master}", *(f"--conf=spark.{each}" for each in settings)]
        command += [f"--jars={','.join(map(str, self.jars))}"] if self.jars else []
        return [*command, *options]


INSTALLED = Release(Path(sys.executable), SPARK_HOME)


class Recipe:
    """A job of docs/examples as a user submits it, with the settings of a small test."""

    def __init__(self, name: str, archive: Path, directory: Path, *arguments: object) -> None:
        self._name = name
        self._archive = archive
        self._directory = directory
        self.checkpoint = directory / "checkpoint"  # that of a stream
        self._arguments = [*map(str, arguments)]
        self.process: Process | None = None
        self._starts = 0

    def start(self, *more: str, master: str = "local[2]", release: Release = INSTALLED) -> Process:
        command = release.submit(master, f"--py-files={self._archive}")
        command += [str(EXAMPLES / f"{self._name}.py"), *self._arguments, *more]
        self._starts += 1
        self.process = Process(self._name, command, self._directory / f"start-{self._starts}")
        self.process.spawn()
        return self.process

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    def batches(self, log: str) -> list[int]:
        """See ``batches_in``."""
        return batches_in(self.checkpoint, log)

    def committed(self, topic: str) -> int:
        return messages_committed(self.checkpoint, topic)

    def is_between(self) -> bool:
        """Whether a batch has ended, and another one has begun and not ended."""
        assert self.process is not None
        assert self.process.alive, self.process.log[-5000:]
        ended = self.batches("commits")
        return bool(ended) and self.batches("offsets")[-1] > ended[-1]

    def finish(self, release: Release = INSTALLED) -> None:
        """Read all that is left in the topic."""
        process = self.start("--once", release=release)
        assert process.exit_code(DEADLINE_S) == 0, process.log[-5000:]


def kill_between(
    job: Recipe,
    feed: Feed,
    until: Callable[[], bool] = lambda: True,
    kills: int = 1,
    release: Release = INSTALLED,
) -> None:
    """Kill the job in a batch, not the first one of its start, when ``until`` holds. More messages
    come after each kill, and in the end the job reads what is left."""
    feed.start()
    for _ in range(kills):
        before = len(job.batches("commits"))
        job.start("--every=0 seconds", release=release)

        def is_time(before: int = before) -> bool:
            return job.is_between() and len(job.batches("commits")) > before and until()

        wait_until("a batch between two", DEADLINE_S, is_time)
        job.kill()
        sent = feed.sent

        def has_more(sent: int = sent) -> bool:
            return feed.sent > sent

        wait_until("more messages", DEADLINE_S, has_more)
    feed.stop()
    job.finish(release)


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
