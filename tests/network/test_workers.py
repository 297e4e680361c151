"""Turns of connections: who is served when, by how many greenlets, and how they end."""

from __future__ import annotations

import gc
import os
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest
from gevent.event import Event

from kafka08.network import workers as workers_module
from kafka08.network.workers import END, MORE, WAIT, WATCHED, Workers

PATIENCE = 5.0


class Pipe:
    """A connection whose turns the tests write; each takes a byte of a pipe."""

    def __init__(self, turns: list[Callable[[], int]]) -> None:
        self.turns = turns
        self.served: list[float] = []
        self.reads = 0
        self.waited = 0
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        self.watcher: Any = gevent.get_hub().loop.io(self.reader, 1)
        self.state = WATCHED
        self.is_unwatched = False

    def send(self, data: bytes = b"x") -> None:
        os.write(self.writer, data)

    def serve(self, until: float) -> int:
        self.served.append(until)
        try:
            os.read(self.reader, 1)
        except BlockingIOError:
            pass
        return self.turns.pop(0)()

    def read_ahead(self) -> None:
        self.reads += 1

    def waits(self) -> None:
        self.waited += 1

    def close(self) -> None:
        self.watcher.close()
        os.close(self.reader)
        os.close(self.writer)


def wait() -> int:
    return WAIT


class WorkersRig:
    """Workers, the connections they serve, and how those ended."""

    def __init__(self) -> None:
        self.ended: list[tuple[Any, BaseException | None]] = []
        self.workers = Workers(self._on_end)
        self.pipes: list[Pipe] = []

    def pipe(self, *turns: Callable[[], int]) -> Pipe:
        made = Pipe(list(turns))
        self.pipes.append(made)
        self.workers.watch(made)
        return made

    def _on_end(self, connection: Any, error: BaseException | None) -> None:
        self.ended.append((connection, error))
        connection.watcher.stop()


@pytest.fixture
def rig() -> Iterator[WorkersRig]:
    made = WorkersRig()
    yield made
    made.workers.kill()
    gevent.sleep(0)
    for pipe in made.pipes:
        pipe.close()


def until(condition: Callable[[], bool]) -> None:
    with gevent.Timeout(PATIENCE):
        while not condition():
            gevent.sleep(0)


def test_bytes_bring_a_turn_and_silence_none(rig: WorkersRig) -> None:
    silent, busy = rig.pipe(), rig.pipe(wait, wait)
    busy.send()
    until(lambda: len(busy.served) == 1)
    busy.send()
    until(lambda: len(busy.served) == 2)
    assert not silent.served and not rig.ended and busy.waited == 0


def test_one_that_waits_keeps_nobody_else_waiting_and_is_not_served_twice(rig: WorkersRig) -> None:
    gate = Event()

    def blocked() -> int:
        gate.wait()
        return WAIT

    slow, other = rig.pipe(blocked, wait), rig.pipe(wait, wait)
    slow.send(b"xx")  # there is more to read while the first request waits
    until(lambda: slow.waited == 1)
    for number in (1, 2):
        other.send()
        until(lambda number=number: len(other.served) == number)  # type: ignore[misc]
    assert len(slow.served) == 1
    gate.set()
    until(lambda: len(slow.served) == 2)


def test_every_waiting_request_has_a_greenlet_and_few_stay(
    rig: WorkersRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers_module, "_MOST_IDLE", 2)
    gate = Event()
    waiting = []

    def blocked() -> int:
        waiting.append(gevent.getcurrent())
        gate.wait()
        return WAIT

    for _ in range(10):
        rig.pipe(blocked).send()
    until(lambda: len(waiting) == 10)
    assert len(set(waiting)) == 10
    gate.set()
    until(lambda: sum(greenlet.dead for greenlet in waiting) == 8)
    again = rig.pipe(wait)
    again.send()
    until(lambda: len(again.served) == 1)


def test_who_has_more_comes_behind_the_others(rig: WorkersRig) -> None:
    order = []

    def turn(name: str, left: int) -> Callable[[], int]:
        def note() -> int:
            order.append(name)
            return left

        return note

    for name in "ab":
        rig.pipe(turn(name, MORE), turn(name, MORE), turn(name, WAIT)).send()
    until(lambda: len(order) == 6)
    assert sorted(order[:2]) == sorted(order[2:4]) == sorted(order[4:]) == ["a", "b"]


def test_sockets_are_looked_at_although_somebody_always_has_more(
    rig: WorkersRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    other = rig.pipe(wait)

    def endless() -> int:
        now[0] += 0.001
        greedy.turns.append(endless)
        if len(greedy.served) == 5:
            other.send()
        return END if other.served else MORE

    greedy = rig.pipe(endless)
    greedy.send()
    until(lambda: bool(rig.ended))
    # Turns are given for 10 ms at a time.
    assert 10 <= len(greedy.served) <= 30
    assert {round(each, 3) for each in greedy.served} <= {0.01, 0.02, 0.03}


def test_the_next_in_line_are_read_from_together_but_not_all(rig: WorkersRig) -> None:
    counts = []

    def turn() -> int:
        counts.append(sum(pipe.reads for pipe in pipes))
        return WAIT

    pipes = [rig.pipe(turn) for _ in range(40)]
    for pipe in pipes:
        pipe.send()
    until(lambda: len(counts) == 40)
    assert all(pipe.reads == 1 for pipe in pipes)
    assert 1 < counts[0] < 40
    assert all(before >= number for number, before in enumerate(counts, 1))


def test_an_only_connection_is_not_read_from_ahead(rig: WorkersRig) -> None:
    only = rig.pipe(wait)
    only.send()
    until(lambda: bool(only.served))
    assert only.reads == 0


def test_the_last_turn_ends_a_connection(rig: WorkersRig) -> None:
    error = ValueError("as told")

    def failing() -> int:
        raise error

    done, failed = rig.pipe(lambda: END), rig.pipe(failing)
    done.send()
    failed.send()
    until(lambda: len(rig.ended) == 2)
    assert dict(rig.ended) == {done: None, failed: error}


def test_killed_workers_end_their_connections(rig: WorkersRig) -> None:
    def blocked() -> int:
        Event().wait()
        return WAIT

    slow = rig.pipe(blocked)
    slow.send()
    until(lambda: slow.waited == 1)
    rig.workers.kill()
    until(lambda: bool(rig.ended))
    ((connection, error),) = rig.ended
    assert connection is slow and isinstance(error, gevent.GreenletExit)


def test_who_was_ready_has_a_turn_before_the_sockets_are_looked_at_again(
    rig: WorkersRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def slow() -> int:
        now[0] += 0.02
        return WAIT

    pipes = [rig.pipe(slow) for _ in range(5)]
    for pipe in pipes:
        pipe.send()
    until(lambda: all(pipe.served for pipe in pipes))
    assert {round(pipe.served[0], 3) for pipe in pipes} == {0.01}


def fail() -> int:
    raise OSError("the request had to make room")


@pytest.mark.parametrize("last_turn", [lambda: END, fail], ids=["end", "error"])
def test_an_ended_connection_is_freed_at_once(
    rig: WorkersRig, last_turn: Callable[[], int]
) -> None:
    gc.disable()  # the collector would hide a circle that keeps the connection's memory
    try:
        check_that_it_is_freed(rig, last_turn)
    finally:
        gc.enable()


def check_that_it_is_freed(rig: WorkersRig, last_turn: Callable[[], int]) -> None:
    pipe = rig.pipe(last_turn)
    pipe.send()
    until(lambda: bool(rig.ended))
    pipe.close()
    gone = weakref.ref(pipe)
    rig.ended.clear()
    rig.pipes.clear()
    del pipe
    assert gone() is None
