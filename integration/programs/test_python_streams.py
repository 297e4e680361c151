"""Quix Streams and faust: groups by a key, state that outlives kill -9."""

from __future__ import annotations

import shutil
import uuid
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from integration import builds
from integration.harness import Broker, Process
from integration.modern import ModernBroker
from integration.programs import python_streams, topics
from integration.programs.topics import Sent
from integration.wire import wait_until

WAIT_S = 180.0
PARTITIONS = 2
COUNT, CUSTOMERS = 100, 4


@pytest.mark.parametrize(
    "program", [pytest.param("quix"), pytest.param("faust", marks=pytest.mark.slow)]
)
def test_it_goes_on_after_kill_9(
    program: str,
    server: Broker | ModernBroker,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    """From the changelog alone."""
    name, state = f"{program}-{uuid.uuid4().hex[:8]}", tmp_path / "state"
    state.mkdir()
    try:
        command = python_streams.command(program, server.address, name, str(state))
    except builds.MissingError as error:
        pytest.skip(str(error))
    application = Process(program, command, tmp_path)
    launch(application)
    numbers: dict[str, list[int]] = defaultdict(list)
    written = 0

    def write() -> None:
        nonlocal written
        first, written = written, written + COUNT
        messages = []
        for number in range(first, written):
            customer = f"c{number % CUSTOMERS}"
            numbers[customer].append(number)
            value = f"{customer} {number}"
            messages.append(Sent(f"k{number}", value, partition=number % PARTITIONS))
        topics.write(server.address, f"{name}-orders", messages)

    def results() -> bool:
        assert application.alive, application.log[-3000:]
        expected = {key: ",".join(map(str, each)) for key, each in numbers.items()}
        return dict(topics.read(server.address, f"{name}-numbers")) == expected

    def read_all() -> bool:
        found = topics.committed(server.address, f"{name}-orders", name, PARTITIONS)
        return sum(found) == written

    for topic in ("orders", "numbers"):
        server.create_topic(f"{name}-{topic}", PARTITIONS)
    write()
    application.spawn()
    wait_until("results", WAIT_S, results)
    wait_until("commits", WAIT_S, read_all)  # then its state is in its changelog alone
    write()
    application.kill()
    write()
    shutil.rmtree(state)
    state.mkdir()
    application.spawn()
    wait_until("results of all", WAIT_S, results)
    write()
    wait_until("results of what came later", WAIT_S, results)
    application.stop()
