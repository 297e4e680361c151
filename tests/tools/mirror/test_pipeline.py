from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from kafka08.producer.errors import ProducerClosedError
from tests.fakes.runtime import FakeClock
from tests.producer.fake_producer import ProducerDriver
from tools.mirror.channel import DataChannel
from tools.mirror.mirror_maker import OurTarget
from tools.mirror.pipeline import Copier, Window


class Position:
    def __init__(self, offset: int = 0) -> None:
        self.processed_offset = offset


class SentMessage(NamedTuple):
    topic: str
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int = -1
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ScriptedReader:
    """Hands out what it was given, then ends, or raises."""

    def __init__(self, *taken: tuple[Position, int] | None, error: Exception | None = None) -> None:
        self._left = deque(taken)
        self._error = error

    def has_next(self) -> bool:
        if not self._left and self._error is not None:
            raise self._error
        return bool(self._left)

    def take(self) -> tuple[Position, SentMessage] | None:
        taken = self._left.popleft()
        if taken is None:
            return None
        position, offset = taken
        return position, SentMessage("one", offset, b"k", b"%d" % offset)


def target_of(driver: ProducerDriver) -> Callable[[bytes | None], OurTarget]:
    target = OurTarget(driver.producer)
    return lambda key: target


class Failures(list[BaseException]):
    pass


@pytest.fixture
def failures() -> Failures:
    return Failures()


def take_all(window: Window, position: Position, *offsets: int) -> list[Any]:
    reader = ScriptedReader(*((position, offset) for offset in offsets))
    found = [window.take(reader) for _ in offsets]
    assert [item[0].offset for item in found if item] == list(offsets)
    return [item[1] for item in found if item]


def test_only_what_precedes_everything_under_way_counts(failures: Failures) -> None:
    window, position = Window(10, failures.append), Position(5)
    done = take_all(window, position, 5, 6, 9)
    done[1](None)
    assert position.processed_offset == 5
    done[0](None)
    assert position.processed_offset == 7
    done[2](None)
    assert position.processed_offset == 10
    assert window.settle(0)


def test_a_failed_send_stops_everything(failures: Failures) -> None:
    window, position = Window(10, failures.append), Position()
    done = take_all(window, position, 0, 1, 2)
    error = OSError("away")
    done[1](error)
    done[2](OSError("later"))
    done[0](None)
    assert position.processed_offset == 1
    assert failures == [error]
    assert window.take(ScriptedReader((position, 3))) is None
    assert window.settle()


def test_failed_sends_may_be_skipped(failures: Failures, caplog: pytest.LogCaptureFixture) -> None:
    window, position = Window(10, failures.append, skip_failed=True), Position()
    done = take_all(window, position, 0, 1)
    done[0](OSError("too large"))
    done[1](None)
    assert position.processed_offset == 2
    assert not failures
    assert "too large" in caplog.text


def test_partitions_do_not_wait_for_each_other(failures: Failures) -> None:
    window, one, two = Window(10, failures.append), Position(), Position()
    take_all(window, one, 0)
    [done] = take_all(window, two, 0)
    done(None)
    assert (one.processed_offset, two.processed_offset) == (0, 1)
    assert not window.settle(0)


def test_a_position_that_was_reset_is_left_alone(failures: Failures) -> None:
    window, position = Window(10, failures.append), Position()
    [before] = take_all(window, position, 0)
    position.processed_offset = 500
    [after] = take_all(window, position, 500)
    before(None)
    assert position.processed_offset == 500
    after(None)
    assert position.processed_offset == 501


def test_a_message_that_was_lost_to_another_member(failures: Failures) -> None:
    window = Window(10, failures.append)
    assert window.take(ScriptedReader(None)) is None
    assert window.settle(0)


def test_no_more_than_the_limit_is_under_way(failures: Failures) -> None:
    window, position = Window(2, failures.append), Position()
    done = take_all(window, position, 0, 1)
    taken = threading.Event()

    def third() -> None:
        take_all(window, position, 2)
        taken.set()

    thread = threading.Thread(target=third)
    thread.start()
    assert not taken.wait(0.05)
    done[0](None)
    assert taken.wait(10)
    thread.join()


@pytest.mark.scenario("ops-19")
def test_the_channel_is_told_what_is_under_way_and_who_waits(failures: Failures) -> None:
    clock = FakeClock()
    channel = DataChannel(clock.monotonic)
    channel.add_stream()

    def put_waits() -> float:
        return float(channel.series()[1].value.share)

    window, position = Window(1, failures.append, channel=channel), Position()
    [done] = take_all(window, position, 0)
    thread = threading.Thread(target=window.take, args=(ScriptedReader((position, 1)),))
    thread.start()
    for _ in range(10_000):
        clock.now += 1
        if put_waits():
            break
        thread.join(0.001)
    done(None)
    thread.join()
    waited = put_waits()
    clock.now += 60
    assert 0 < put_waits() < waited
    sizes, _, take_waits = (each.value for each in channel.series())
    assert (sizes.count, sizes.sum, sizes.max) == (3, 2, 1)
    assert take_waits.share == 0


def test_stop_ends_waits(failures: Failures) -> None:
    window, position = Window(1, failures.append), Position()
    take_all(window, position, 0)
    results: list[Any] = []
    reader = ScriptedReader((position, 1))
    threads = [
        threading.Thread(target=lambda: results.append(window.take(reader))),
        threading.Thread(target=lambda: results.append(window.settle())),
    ]
    for thread in threads:
        thread.start()
    window.stop()
    for thread in threads:
        thread.join(10)
    assert sorted(results, key=str) == [False, None]


def test_after_stop_settle_still_waits_for_what_is_under_way(failures: Failures) -> None:
    window, position = Window(10, failures.append), Position()
    [done] = take_all(window, position, 0)
    window.stop()
    timer = threading.Timer(0.02, done, [None])
    timer.start()
    assert window.settle(10)
    assert position.processed_offset == 1
    timer.join()


def test_copier(failures: Failures) -> None:
    window, position, driver = Window(10, failures.append), Position(), ProducerDriver()
    reader = ScriptedReader((position, 0), None, (position, 1))
    copier = Copier(0, reader, window, target_of(driver), failures.append)
    copier.run()
    assert position.processed_offset == 0
    driver.run()
    assert driver.cluster.values("one", 0) == [b"0", b"1"]
    assert position.processed_offset == 2
    assert not failures


def test_copier_whose_stream_fails(failures: Failures, caplog: pytest.LogCaptureFixture) -> None:
    error = ValueError("bad crc")
    window = Window(10, failures.append)
    copier = Copier(
        0, ScriptedReader(error=error), window, target_of(ProducerDriver()), failures.append
    )
    copier.run()
    assert failures == [error]
    assert "Stream unexpectedly exited." in caplog.text


def test_copier_whose_target_refuses(failures: Failures) -> None:
    driver = ProducerDriver()
    driver.producer.close()
    window, position = Window(10, failures.append), Position()
    reader = ScriptedReader((position, 0))
    copier = Copier(0, reader, window, target_of(driver), failures.append)
    copier.run()
    assert [type(failure) for failure in failures] == [ProducerClosedError]
    assert position.processed_offset == 0
