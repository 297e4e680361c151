"""The scheduler: order by the seed, time without waiting, death without a last word."""

from __future__ import annotations

import pytest

from tests.simulation.scheduler import (
    SECOND,
    Process,
    ProcessKilled,
    Scheduler,
    Stalled,
    TaskFailed,
)


def order(seed: int) -> tuple[list[int], str]:
    """In which order three tasks take two steps each, and the hash."""
    scheduler = Scheduler(seed)
    process = scheduler.process("p")
    steps: list[int] = []

    def work(number: int) -> None:
        steps.append(number)
        scheduler.wait("its turn", 0)
        steps.append(number)

    for number in range(3):
        process.spawn("work", work, number)
    scheduler.run(lambda: not process.tasks, seconds=1)
    return steps, scheduler.trace.hash


def test_a_seed_gives_one_order_and_seeds_give_many() -> None:
    found = [order(seed) for seed in range(20)]
    assert found == [order(seed) for seed in range(20)]
    assert len({tuple(steps) for steps, _ in found}) > 5
    assert len({trace for _, trace in found}) > 5


def test_time_passes_in_waits_only() -> None:
    scheduler = Scheduler(1)
    process = scheduler.process("p")
    woken: list[tuple[str, int]] = []

    def wait(name: str, seconds: int) -> None:
        assert not scheduler.wait("time", seconds * SECOND)
        woken.append((name, scheduler.now // SECOND))

    process.spawn("late", wait, "late", 3600)
    process.spawn("early", wait, "early", 60)
    scheduler.run(lambda: not process.tasks, seconds=3601)
    assert woken == [("early", 60), ("late", 3600)]


def test_a_call_that_is_cancelled_is_not_made() -> None:
    scheduler = Scheduler(1)
    made: list[str] = []
    scheduler.after(1, lambda: made.append("first")).cancel()
    scheduler.after(2, lambda: made.append("second"))
    scheduler.run_for(1)
    assert made == ["second"]


def test_a_task_is_woken_before_its_time() -> None:
    scheduler = Scheduler(1)
    process = scheduler.process("p")
    answers: list[bool] = []
    task = process.spawn("wait", lambda: answers.append(scheduler.wait("a wake", SECOND)))
    scheduler.step()
    assert scheduler.wake(task)
    assert not scheduler.wake(task)
    scheduler.run_for(2)
    assert answers == [True]


def test_a_join_waits_for_the_end() -> None:
    scheduler = Scheduler(1)
    process = scheduler.process("p")
    answers: list[bool] = []
    worker = process.spawn("work", scheduler.wait, "time", 5 * SECOND)

    def join() -> None:
        answers.extend([worker.join(1.0), worker.join(), worker.join(0)])

    process.spawn("join", join)
    scheduler.run(lambda: len(answers) == 3, seconds=6)
    assert answers == [False, True, True]


class Victim:
    """A process with a task that waits, and one that does not come to its first step."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(1)
        self.process: Process = self.scheduler.process("p")
        self.done: list[str] = []
        self.process.spawn("wait", self._wait)
        self.scheduler.step()
        self.process.spawn("late", self.done.append, "late")

    def _wait(self) -> None:
        try:
            self.scheduler.wait("its end")
            self.done.append("woken")
        finally:
            self.done.append("unwound")
            self.scheduler.wait("more in the end")
            self.done.append("waited while it was unwound")


def test_the_tasks_of_a_killed_process_take_no_step_more() -> None:
    victim = Victim()
    victim.process.kill()
    assert not victim.scheduler.step()
    assert victim.done == ["unwound"]
    assert not victim.process.tasks
    with pytest.raises(ProcessKilled):
        victim.process.spawn("more", print)


def test_a_task_may_kill_its_own_process() -> None:
    victim = Victim()

    def kill() -> None:
        victim.process.kill()
        victim.scheduler.wait("nothing")
        victim.done.append("lived on")

    victim.process.tasks.popitem()
    victim.process.spawn("kill", kill)
    victim.scheduler.run_for(1)
    assert "lived on" not in victim.done and "unwound" in victim.done


def test_errors_of_the_dead_are_not_heard() -> None:
    scheduler = Scheduler(1)
    process = scheduler.process("p")

    def fail() -> None:
        try:
            scheduler.wait("its end")
        finally:
            raise OSError("the disk is gone")

    process.spawn("fail", fail)
    scheduler.step()
    process.kill()
    scheduler.end()
    assert not process.tasks


def test_a_deadlock_is_told() -> None:
    scheduler = Scheduler(1)
    process = scheduler.process("p")
    process.spawn("one", scheduler.wait, "the other")
    with pytest.raises(Stalled, match="nothing can happen"):
        scheduler.run(lambda: False, seconds=1)
    assert "p/one#1 waits for the other" in scheduler.describe(process)


def test_more_time_than_was_given_is_told() -> None:
    scheduler = Scheduler(1)
    scheduler.process("p").spawn("one", scheduler.wait, "time", 9 * SECOND)
    with pytest.raises(Stalled, match="not done after 1 s"):
        scheduler.run(lambda: scheduler.now > 5 * SECOND, seconds=1)


def test_the_error_of_a_task_ends_the_run() -> None:
    scheduler = Scheduler(1)
    scheduler.process("p").spawn("one", lambda: [][0])
    with pytest.raises(TaskFailed, match="p/one#1 failed: IndexError"):
        scheduler.run_for(1)


def test_a_paused_process_takes_no_step_and_goes_on_later() -> None:
    scheduler = Scheduler(1)
    paused, other = scheduler.process("paused"), scheduler.process("other")
    steps: list[str] = []

    def work(name: str) -> None:
        for _ in range(3):
            steps.append(name)
            scheduler.wait("time", SECOND)

    paused.spawn("work", work, "paused")
    other.spawn("work", work, "other")
    paused.pause()
    paused.spawn("more", work, "more")
    scheduler.run(lambda: not other.tasks, seconds=10)
    assert steps == ["other"] * 3
    paused.resume()
    scheduler.run_for(0.5)
    paused.pause()
    scheduler.run_for(10.0)
    assert sorted(steps[3:]) == ["more", "paused"]
    paused.resume()
    scheduler.run(lambda: not paused.tasks, seconds=10)
    assert len(steps) == 9


def test_a_paused_process_can_be_killed() -> None:
    scheduler = Scheduler(1)
    process = scheduler.process("p")
    process.spawn("work", lambda: None)
    process.pause()
    process.kill()
    scheduler.run_for(1.0)
    assert not process.tasks
