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
