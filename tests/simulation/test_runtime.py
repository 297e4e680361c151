"""The runtime of a simulated process keeps the promises of kafka08.runtime."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from kafka08.runtime import Empty, Full, Queue
from tests.simulation.network import SimulatedNetwork
from tests.simulation.runtime import EPOCH_MS, SimulatedClock, SimulatedRuntime
from tests.simulation.scheduler import SECOND, Scheduler

SEEDS = range(10)


def runtime_of(seed: int, rate: float = 1.0) -> SimulatedRuntime:
    scheduler = Scheduler(seed)
    clock = SimulatedClock(scheduler, rate=rate)
    return SimulatedRuntime(scheduler, SimulatedNetwork(scheduler), "host", clock)


def finish(runtime: SimulatedRuntime, *functions: Callable[[], object]) -> None:
    """Run these as tasks to their ends."""
    for function in functions:
        runtime.spawn("test", function)
    runtime.scheduler.run(lambda: not runtime.process.tasks, seconds=60)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_event_wakes_all_that_wait(seed: int) -> None:
    runtime = runtime_of(seed)
    event = runtime.event()
    woken: list[bool] = []

    def wait() -> None:
        woken.append(event.wait())

    def begin() -> None:
        runtime.sleep(1)
        assert not woken
        event.set()

    finish(runtime, wait, begin, wait)
    assert woken == [True, True] and event.is_set()


def test_a_wait_for_an_event_ends_with_its_time() -> None:
    runtime = runtime_of(1)
    event = runtime.event()
    answers: list[bool] = []
    finish(runtime, lambda: answers.append(event.wait(2.0)))
    assert answers == [False]
    assert runtime.scheduler.now >= 2 * SECOND


@pytest.mark.parametrize("seed", SEEDS)
def test_a_queue_gives_each_item_to_one_in_order(seed: int) -> None:
    runtime = runtime_of(seed)
    queue = runtime.queue(maxsize=2)
    got: list[int] = []

    def put() -> None:
        for number in range(9):
            queue.put(number)

    def get() -> None:
        got.extend(queue.get() for _ in range(3))

    finish(runtime, put, get, get, get)
    assert got == list(range(9)) and queue.empty()


def test_a_queue_raises_when_the_time_has_passed() -> None:
    runtime = runtime_of(1)
    queue = runtime.queue(maxsize=1)

    def use() -> None:
        with pytest.raises(Empty):
            queue.get(timeout=1)
        with pytest.raises(Empty):
            queue.get(block=False)
        queue.put("a")
        with pytest.raises(Full):
            queue.put("b", timeout=1)

    finish(runtime, use)
    assert queue.qsize() == 1


def test_no_item_is_left_with_one_who_has_given_up() -> None:
    """The first of two getters runs out of time at the moment of the put."""
    for seed in range(30):
        runtime = runtime_of(seed)
        queue = runtime.queue()
        got: list[str] = []

        def get(timeout: float, queue: Queue[str] = queue, got: list[str] = got) -> None:
            with suppress(Empty):
                got.append(queue.get(timeout=timeout))

        def put(runtime: SimulatedRuntime = runtime, queue: Queue[str] = queue) -> None:
            runtime.sleep(0.00003)
            queue.put("a")

        finish(runtime, partial(get, 0.00002), partial(get, 1.0), put)
        assert got == ["a"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lock_has_one_owner_who_may_take_it_again(seed: int) -> None:
    runtime = runtime_of(seed)
    lock = runtime.lock()
    inside: list[int] = []

    def work() -> None:
        with lock, lock:
            inside.append(1)
            runtime.sleep(1)
            assert len(inside) == 1
            inside.pop()

    finish(runtime, work, work, work)
    assert lock.acquire(blocking=False)


def test_clocks_go_at_their_own_rates_and_jump() -> None:
    runtime = runtime_of(1, rate=2.0)
    clock = runtime.clock
    assert isinstance(clock, SimulatedClock)
    finish(runtime, lambda: runtime.sleep(10))
    assert 10 <= clock.monotonic() < 10.001
    assert 5 * SECOND <= runtime.scheduler.now < 5.001 * SECOND
    before = clock.monotonic()
    clock.jump(-60_000)
    assert clock.monotonic() == before
    assert clock.millis() == EPOCH_MS - 60_000 + int(before * 1000)


def test_a_call_on_another_thread_takes_time_and_may_fail() -> None:
    runtime = runtime_of(1)
    answers: list[object] = []

    def call() -> None:
        answers.append(runtime.blocking(sorted, [2, 1]))
        with pytest.raises(ZeroDivisionError):
            runtime.blocking(divmod, 1, 0)

    finish(runtime, call)
    assert answers == [[1, 2]]
    assert runtime.scheduler.now > 0


def test_what_a_dead_process_was_told_reaches_nobody() -> None:
    runtime = runtime_of(1)
    queue, event = runtime.queue(), runtime.event()
    got: list[object] = []
    runtime.spawn("get", lambda: got.append(queue.get()))
    runtime.spawn("wait", lambda: got.append(event.wait()))
    runtime.scheduler.run_for(1)
    runtime.kill()
    queue.put("late")
    event.set()
    runtime.scheduler.run_for(1)
    assert not got


def test_a_clock_that_drifts_does_not_go_back() -> None:
    scheduler = Scheduler(1)
    clock = SimulatedClock(scheduler)
    scheduler.run_for(0)
    shown: list[float] = []
    for rate in (1.0, 0.5, 2.0):
        clock.drift(rate)
        shown.append(clock.monotonic())
        scheduler.now += 100 * SECOND
    assert [*shown, clock.monotonic()] == [0.0, 100.0, 150.0, 350.0]
    assert clock.millis() == EPOCH_MS + 350_000


def test_a_call_on_a_thread_takes_as_long_as_the_disk() -> None:
    scheduler = Scheduler(1)
    network = SimulatedNetwork(scheduler)
    runtime = SimulatedRuntime(scheduler, network, "host", None, lambda: 5 * SECOND)
    finish(runtime, lambda: runtime.blocking(lambda: None))
    assert scheduler.now >= 5 * SECOND
