"""Windows over the time of reading, while the driver is killed between the sink's write and the
commit of the batch: each message of the log counts once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.harness import Broker, Process
from integration.spark.scene import (
    DEADLINE_S,
    SPARK_WARNINGS,
    lines_of,
    messages_committed,
    new_topic,
    send,
)
from integration.spark.support import driver, missing
from integration.wire import wait_until

if missing():
    pytest.skip(missing(), allow_module_level=True)
pytest.importorskip("pyarrow")

pytestmark = SPARK_WARNINGS
JOB = Path(__file__).parent / "jobs" / "windows.py"
ROUND = 75


class Counting:
    def __init__(self, broker: Broker, directory: Path, launch: Callable[[Process], None]) -> None:
        self._broker = broker
        self._directory = directory
        self._launch = launch
        self._topic = new_topic(broker, 2)
        self._out = directory / "out"
        self._out.mkdir()
        self.sent = 0
        self.process = self._start()

    def _start(self) -> Process:
        name = f"driver-{self.sent}"
        args = (self._directory / "checkpoint", self._out, self._broker.address, self._topic)
        process = driver(name, self._directory / name, JOB, *args)
        self._launch(process)
        return process

    def send(self) -> None:
        send(self._broker, self._topic, self.sent % 2, range(ROUND))
        self.sent += ROUND

    def _wait(self, what: str, condition: Callable[[], bool]) -> None:
        def there() -> bool:
            assert self.process.alive, self.process.log[-3000:]
            return condition()

        wait_until(what, DEADLINE_S, there)

    def kill_before_the_commit(self) -> None:
        """A batch is written, perhaps not for the first time, and not committed."""
        hold, written = self._out / "hold", self._out / "written"
        hold.touch()
        before = len(lines_of(written))
        self.send()
        self._wait("a batch that is written", lambda: len(lines_of(written)) > before)
        self.process.kill()
        hold.unlink()
        self.process = self._start()

    def counted(self) -> int:
        path = self._out / "counts"
        return sum(json.loads(path.read_text()).values()) if path.exists() else 0

    def finish(self) -> None:
        # Counts may be right too soon: when a batch counted twice stands for one to come.
        checkpoint = self._directory / "checkpoint"
        self._wait(
            "the last commit", lambda: messages_committed(checkpoint, self._topic) == self.sent
        )
        (self._out / "stop").touch()
        assert self.process.exit_code(DEADLINE_S) == 0, self.process.log[-3000:]


def count_exactly(
    broker: Broker, directory: Path, launch: Callable[[Process], None], kills: int
) -> None:
    counting = Counting(broker, directory, launch)
    for _ in range(kills):
        counting.kill_before_the_commit()
    counting.finish()
    assert counting.counted() == counting.sent == kills * ROUND


def test_a_window_counts_each_message_once_after_two_kills(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    count_exactly(broker, tmp_path, launch, 2)


@pytest.mark.slow
def test_a_window_counts_each_message_once_after_twenty_kills(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    count_exactly(broker, tmp_path, launch, 20)
