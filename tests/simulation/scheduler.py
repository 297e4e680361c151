"""One seeded scheduler of greenlets, with virtual time.

One task runs at a time, until it waits. Then the seed picks the next of those that can run; if none
can, time moves on to the next timer. A step takes ``STEP`` of virtual time, so that a task that
looks at a clock again and again sees it move. Tasks belong to processes, which can be killed. The
``Trace`` of a run has every step; its hash tells whether two runs were the same. Knows neither
brokers nor networks.
"""

from __future__ import annotations

import heapq
import random
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from typing import Any

import greenlet

SECOND = 1_000_000
"""Times are whole microseconds since the start of the run."""
STEP = 10
_SHOWN = 200
_HASHED = 500
"""So many lines at once."""


class ProcessKilled(BaseException):
    """The process of this task is dead. No handler for errors catches it."""


class Stalled(AssertionError):
    """Tasks wait for what will not happen: a deadlock, or more time than they were given."""


class TaskFailed(AssertionError):
    """A task ended with an error."""


class Trace:
    """The events of a run, in order: a hash of all of them, and the last lines. ``tell`` is called
    with each line."""

    def __init__(self, tell: Callable[[str], object] | None = None) -> None:
        self.last: deque[str] = deque(maxlen=_SHOWN)
        self._hash = blake2b(digest_size=8)
        self._unhashed: list[str] = []
        self._tell = tell

    def add(self, now: int, who: str, what: str) -> None:
        line = f"{now / SECOND:12.6f} {who}: {what}"
        self.last.append(line)
        self._unhashed.append(line)
        if len(self._unhashed) >= _HASHED:
            self._add_to_hash()
        if self._tell is not None:
            self._tell(line)

    def _add_to_hash(self) -> None:
        self._hash.update("\n".join([*self._unhashed, ""]).encode())
        self._unhashed.clear()

    @property
    def hash(self) -> str:
        self._add_to_hash()
        return self._hash.hexdigest()


class PlannedCall:
    """A call at a time, unless it is cancelled first."""

    __slots__ = ("act",)

    def __init__(self, act: Callable[[], object]) -> None:
        self.act: Callable[[], object] | None = act

    def cancel(self) -> None:
        self.act = None


class Process:
    """Tasks that die together. ``failed`` is called with the task and the error when one of them
    ends with an error: it raises, or has dealt with it."""

    def __init__(self, scheduler: Scheduler, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.held: list[SimulatedTask] | None = None
        """The tasks that could run, while the process is paused; None while it is not."""
        self.tasks: dict[int, SimulatedTask] = {}
        self.failed: Callable[[SimulatedTask, BaseException], object] = _fail
        self.scheduler = scheduler

    def spawn(self, name: str, function: Callable[..., object], *args: object) -> SimulatedTask:
        if self.is_dead:
            raise ProcessKilled
        return self.scheduler.spawn(self, name, function, *args)

    def kill(self) -> None:
        """End all tasks, as by kill -9: none of them takes another step.

        Their ``finally`` and ``with`` are unwound, so that memory and descriptors are freed;
        every wait of a dead process raises ProcessKilled, and what else could leave a trace in the
        world (disks, sockets) must refuse a dead process. If one of its own tasks calls this, it
        must raise ProcessKilled or the like next.
        """
        if not self.is_dead:
            self.is_dead = True
            self.held = None
            self.scheduler.bury(self)

    def pause(self) -> None:
        """No task takes a step until ``resume``, as by SIGSTOP. Time goes on."""
        if self.held is None and not self.is_dead:
            self.held = self.scheduler.hold(self)

    def resume(self) -> None:
        held, self.held = self.held, None
        self.scheduler.let_run(held or ())


def _fail(task: SimulatedTask, error: BaseException) -> None:
    raise TaskFailed(f"{task} failed: {error!r}") from error


class SimulatedTask:
    """kafka08.runtime.TaskHandle. ``waits_for`` says what, None while it can run."""

    def __init__(self, process: Process, number: int, name: str, run: Callable[[], object]) -> None:
        self.name = name
        self.process = process
        self.number = number
        self.waits_for: str | None = None
        self.has_ended = False
        self.joiners: list[SimulatedTask] = []
        self.timed_out = False
        self.greenlet: Any = greenlet.greenlet(run)
        self._text = f"{process.name}/{name}#{number}"

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False if ``timeout`` seconds passed first."""
        return self.process.scheduler.join(self, timeout)

    def __str__(self) -> str:
        return self._text


def _look_away(task: SimulatedTask | None) -> None: ...


def _number(task: SimulatedTask) -> int:
    return task.number


class Scheduler:
    """``run`` is called by the greenlet that made this. ``rng`` is the one source of chance."""

    def __init__(self, seed: int, trace: Trace | None = None) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.now = 0
        self.trace = trace or Trace()
        self.current: SimulatedTask | None = None
        # Called after each step, with its task, and after each planned call.
        self.look: Callable[[SimulatedTask | None], object] = _look_away
        self.steps = 0
        self._main = greenlet.getcurrent()
        # By number: a set may wake tasks in an order that does not come from the seed.
        self._ready: list[SimulatedTask] = []
        self._timers: list[tuple[int, int, PlannedCall]] = []
        self._numbers = 0
        self._unburied: list[Process] = []
        self._error: BaseException | None = None

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def note(self, what: str, who: str | None = None) -> None:
        """Put a line into the trace."""
        self.trace.add(self.now, who or str(self.current or "world"), what)

    # Time

    def at(self, when: int, act: Callable[[], object]) -> PlannedCall:
        """Call ``act`` then, outside of tasks: it must not wait."""
        timer = PlannedCall(act)
        heapq.heappush(self._timers, (max(when, self.now), self._number(), timer))
        return timer

    def after(self, micros: int, act: Callable[[], object]) -> PlannedCall:
        return self.at(self.now + micros, act)

    # Tasks

    def process(self, name: str) -> Process:
        return Process(self, name)

    def spawn(
        self, process: Process, name: str, function: Callable[..., object], *args: object
    ) -> SimulatedTask:
        task = SimulatedTask(
            process, self._number(), name, lambda: self._live(task, function, args)
        )
        task.greenlet.parent = self._main
        process.tasks[task.number] = task
        self.let_run((task,))
        return task

    def _live(
        self, task: SimulatedTask, function: Callable[..., object], args: tuple[object, ...]
    ) -> None:
        try:
            function(*args)
        except (ProcessKilled, greenlet.GreenletExit):
            pass
        except BaseException as error:
            if not task.process.is_dead:
                try:
                    task.process.failed(task, error)
                except BaseException as failure:
                    self._error = self._error or failure
        finally:
            task.has_ended = True
            task.process.tasks.pop(task.number, None)
            for joiner in task.joiners:
                self.wake(joiner)

    def join(self, task: SimulatedTask, timeout: float | None) -> bool:
        if not task.has_ended and task is not self.current:
            assert self.current is not None, f"{task} is joined by no task"
            task.joiners.append(self.current)
            self.wait(f"the end of {task}", None if timeout is None else round(timeout * SECOND))
            if not task.has_ended and self.current in task.joiners:
                task.joiners.remove(self.current)
        return task.has_ended

    def wait(self, what: str, micros: int | None = None) -> bool:
        """Suspend the current task until ``wake``; False if so many microseconds passed first."""
        task = self.current
        assert task is not None, f"no task may wait here for {what}"
        if task.process.is_dead:
            raise ProcessKilled
        task.timed_out = False
        task.waits_for = what
        timer = None if micros is None else self.after(micros, partial(self._time_out, task))
        try:
            self._main.switch()
        finally:
            if timer is not None:
                timer.cancel()
        return not task.timed_out

    def wake(self, task: SimulatedTask) -> bool:
        """Let a task that waits run again; False if it does not wait."""
        if task.waits_for is None or task.process.is_dead:
            return False
        task.waits_for = None
        self.let_run((task,))
        return True

    def let_run(self, tasks: Iterable[SimulatedTask]) -> None:
        """From now on they can run, or once their process is not paused."""
        for task in tasks:
            held = task.process.held
            places = self._ready if held is None else held
            if places and places[-1].number > task.number:
                insort(places, task, key=_number)
            else:
                places.append(task)

    def hold(self, process: Process) -> list[SimulatedTask]:
        """Take those that can run from a process."""
        held = [task for task in self._ready if task.process is process]
        self._ready = [task for task in self._ready if task.process is not process]
        return held

    def _time_out(self, task: SimulatedTask) -> None:
        task.timed_out = self.wake(task)

    def bury(self, process: Process) -> None:
        self._ready = [task for task in self._ready if task.process is not process]
        self._unburied.append(process)

    def _unwind(self) -> None:
        """Runs in the scheduler's own greenlet, while no task runs."""
        while self._unburied:
            process = self._unburied.pop()
            for task in list(process.tasks.values()):
                if task.greenlet:  # it has begun
                    self.current = task
                    task.greenlet.throw(ProcessKilled)
                self.current = None
                process.tasks.pop(task.number, None)

    # Running

    def run(self, done: Callable[[], bool], *, seconds: float) -> None:
        """Run until ``done``, which is asked after every step.

        Raises Stalled after so much virtual time, or if nothing can happen any more; and the error
        of a task that failed.
        """
        until = self.now + round(seconds * SECOND)
        while not done():
            if self.now >= until:
                raise Stalled(f"not done after {seconds} s\n{self.describe()}")
            if not self.step(until):
                raise Stalled(f"nothing can happen any more\n{self.describe()}")

    def run_for(self, seconds: float) -> None:
        """Run for so long, or until nothing can happen any more."""
        self.run_to(self.now + round(seconds * SECOND))

    def run_to(self, end: int) -> None:
        """Run until that time, or until nothing can happen any more."""
        while self.now < end and self.step(end):
            pass

    @contextmanager
    def chance(self, seed: str) -> Iterator[None]:
        """While in use, what is chosen depends on ``seed`` alone. Nothing may run meanwhile."""
        rng, self.rng = self.rng, random.Random(seed)
        try:
            yield
        finally:
            self.rng = rng

    def end(self) -> None:
        """Unwind the processes that were killed last; nothing runs any more."""
        self._unwind()
        self._fire()

    def step(self, until: int | None = None) -> bool:
        """One step of one task, or of time, at most ``until`` then; False if nothing can happen."""
        if self._unburied:
            self._unwind()
        if self._timers and self._timers[0][0] <= self.now:
            self._fire()
        ready = self._ready
        if not ready:
            return self._move_on(until)
        task = ready.pop(self.rng.randrange(len(ready)) if len(ready) > 1 else 0)
        self.current = task
        self.steps += 1
        self.trace.add(self.now, str(task), "runs")
        self.now += STEP
        task.greenlet.switch()
        self.current = None
        if self._unburied:
            self._unwind()
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        self.look(task)
        return True

    def _fire(self) -> None:
        timers = self._timers
        while timers and timers[0][0] <= self.now:
            act = heapq.heappop(timers)[2].act
            if act is not None:
                act()
                self.look(None)

    def _move_on(self, until: int | None) -> bool:
        timers = self._timers
        while timers and timers[0][2].act is None:
            heapq.heappop(timers)
        if not timers:
            return False
        if until is not None and timers[0][0] > until:
            self.now = until
            return True
        self.now = max(self.now, timers[0][0])
        self._fire()
        return True

    def describe(self, *processes: Process) -> str:
        """The tasks that wait and for what, and the end of the trace."""
        lines = [f"seed {self.seed}, {self.now / SECOND} s, trace {self.trace.hash}"]
        lines += [
            f"  {task} waits for {task.waits_for}"
            for process in processes
            for task in process.tasks.values()
        ]
        return "\n".join([*lines, *list(self.trace.last)[-40:]])
