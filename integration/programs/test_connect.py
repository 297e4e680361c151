"""Kafka Connect 3.9, distributed: files into a topic and out, whatever becomes of the workers."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from integration import builds
from integration.harness import Broker, Process
from integration.modern import ModernBroker
from integration.programs import topics
from integration.programs.connect import WAIT_S, Worker
from integration.wire import wait_until

COUNT = 200
Server = Broker | ModernBroker


def once(lines: list[str]) -> list[str]:
    """Without repetitions, which at least once allows."""
    return list(dict.fromkeys(lines))


@pytest.mark.slow
def test_files_go_through_killed_workers_and_new_connectors(
    server: Server, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    name = f"connect-{uuid.uuid4().hex[:8]}"
    source, target = tmp_path / "source.txt", tmp_path / "target.txt"
    expected: list[str] = []

    def worker(number: int) -> Worker:
        try:
            made = Worker(server.address, name, tmp_path / f"worker-{number}")
        except builds.MissingError as error:
            pytest.skip(str(error))
        launch(made)
        return made.begin()

    def append() -> None:
        lines = [f"line {len(expected) + n}" for n in range(COUNT)]
        with source.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        expected.extend(lines)

    def arrive() -> None:
        wait_until("all lines", WAIT_S, lambda: once(target.read_text().splitlines()) == expected)

    def make(at: Worker) -> None:
        at.make("source", "Source", file=str(source), topic=name)
        at.make("sink", "Sink", file=str(target), topics=name)

    server.create_topic(name)
    append()
    workers = [worker(0), worker(1)]
    for each in workers:
        each.await_start()
    make(workers[0])
    arrive()
    assert target.read_text().splitlines() == expected  # nothing was killed yet
    for number, connector in enumerate(("source", "sink"), 2):

        def running(connector: str = connector) -> list[Worker]:
            """Where the task runs; none while a rebalance is not over, or its end not yet told."""
            address = workers[0].task(connector)
            return [each for each in workers if address == f"127.0.0.1:{each.port}"]

        wait_until(f"the task of {connector}", WAIT_S, running)
        (lost,) = running()
        append()
        lost.kill()
        append()
        workers.remove(lost)
        workers.append(worker(number))
        workers[-1].await_start()
        arrive()
    # A worker knows its new assignment some time after it has started.
    for connector in ("source", "sink"):
        wait_until("a task", WAIT_S, lambda c=connector: workers[0].task(c))
        workers[0].delete(connector)
    read = len(target.read_text().splitlines())
    append()
    make(workers[1])
    arrive()
    # The offsets of a connector outlive it: what it has read does not come again.
    assert target.read_text().splitlines()[read:] == expected[-COUNT:]
    assert once([value for _, value in topics.read(server.address, name)]) == expected
    for each in workers:
        assert each.stop() == 143


@pytest.mark.scenario("transactions-44")
def test_a_source_writes_each_line_once(
    server: Server, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """Workers with ``exactly.once.source.support`` are killed or stopped while lines come, and
    killed within a transaction. A reader of committed transactions sees the file as it is."""
    name = f"once-{uuid.uuid4().hex[:8]}"
    source = tmp_path / "source.txt"
    expected: list[str] = []

    def worker(number: int) -> Worker:
        directory = tmp_path / f"worker-{number}"
        try:
            made = Worker(server.address, name, directory, exactly_once_source_support="enabled")
        except builds.MissingError as error:
            pytest.skip(str(error))
        launch(made)
        return made.begin()

    def append(count: int) -> None:
        lines = [f"line {len(expected) + n}" for n in range(count)]
        with source.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        expected.extend(lines)

    def lines(*, committed: bool) -> list[str]:
        return [value for _, value in topics.read(server.address, name, committed=committed)]

    def make(**boundary: object) -> None:
        """Its task commits what it finds in the file at once, or at a boundary of its own."""
        values = {"exactly.once.support": "required", **boundary}
        workers[0].make("source", "Source", file=str(source), topic=name, **values)

    def replace(number: int, end: Callable[[Worker], object] = Worker.kill) -> None:
        """The worker, of two, that runs the task, by another one."""
        address = ""

        def runs() -> bool:
            nonlocal address
            address = workers[0].task("source")
            return bool(address)

        wait_until("the task", WAIT_S, runs)
        (lost,) = (each for each in workers if address == f"127.0.0.1:{each.port}")
        end(lost)
        workers.remove(lost)
        workers.append(worker(number))
        workers[-1].await_start()

    server.create_topic(name)
    append(COUNT)
    workers = [worker(0), worker(1)]
    for each in workers:
        each.await_start()
    make()
    wait_until("all lines", WAIT_S, lambda: lines(committed=True) == expected)

    for number, end in enumerate((Worker.kill, Worker.stop), 2):
        begin = len(expected)

        def flows(begin: int = begin) -> bool:
            append(20)
            return len(lines(committed=True)) > begin + COUNT

        wait_until("more lines", WAIT_S, flows)
        append(COUNT)
        replace(number, end)
        append(COUNT)
        wait_until("all lines", WAIT_S, lambda: lines(committed=True) == expected)

    make(**{"transaction.boundary": "interval", "transaction.boundary.interval.ms": 3_600_000})
    stored, before = len(lines(committed=False)), list(expected)
    append(COUNT)

    def are_stored(times: int) -> bool:
        return len(lines(committed=False)) == stored + times * COUNT

    wait_until("an open transaction", WAIT_S, lambda: are_stored(1))
    replace(4)
    wait_until("the next task's", WAIT_S, lambda: are_stored(2))
    assert lines(committed=True) == before
    make()  # the task with the former settings commits as it ends
    wait_until("all lines", WAIT_S, lambda: lines(committed=True) == expected)
    for each in workers:
        assert each.stop() == 143
    assert lines(committed=True) == expected
