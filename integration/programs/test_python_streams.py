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
Server = Broker | ModernBroker


class Application(Process):
    """A program with its topics and the results that it should have."""

    def __init__(self, program: str, server: Server, directory: Path) -> None:
        self._address = server.address
        self._name = f"{program}-{uuid.uuid4().hex[:8]}"
        self._state = directory / "state"
        self._numbers: dict[str, list[int]] = defaultdict(list)
        self._written = 0
        try:
            command = python_streams.command(program, self._address, self._name, str(self._state))
        except builds.MissingError as error:
            pytest.skip(str(error))
        for topic in ("orders", "numbers"):
            server.create_topic(f"{self._name}-{topic}", PARTITIONS)
        super().__init__(program, command, directory)

    def start_without_state(self) -> None:
        shutil.rmtree(self._state, ignore_errors=True)
        self._state.mkdir()
        self.spawn()

    def write(self) -> None:
        first, self._written = self._written, self._written + COUNT
        messages = []
        for number in range(first, self._written):
            customer = f"c{number % CUSTOMERS}"
            self._numbers[customer].append(number)
            value = f"{customer} {number}"
            messages.append(Sent(f"k{number}", value, partition=number % PARTITIONS))
        topics.write(self._address, f"{self._name}-orders", messages)

    def await_results(self) -> None:
        expected = {key: ",".join(map(str, each)) for key, each in self._numbers.items()}

        def there() -> bool:
            assert self.alive, self.log[-3000:]
            return dict(topics.read(self._address, f"{self._name}-numbers")) == expected

        wait_until("results", WAIT_S, there)

    def await_commits(self) -> None:
        """Until no message of before is read again: then its state is in its changelog alone."""

        def committed() -> bool:
            topic = f"{self._name}-orders"
            found = topics.committed(self._address, topic, self._name, PARTITIONS)
            return sum(found) == self._written

        wait_until("commits", WAIT_S, committed)


@pytest.mark.slow
@pytest.mark.parametrize("program", python_streams.NAMES)
def test_it_restores_its_state(
    program: str, server: Server, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    application = Application(program, server, tmp_path)
    launch(application)
    application.write()
    application.start_without_state()
    application.await_results()
    application.await_commits()
    application.kill()
    application.start_without_state()
    application.wait_for(python_streams.READY[program], WAIT_S)
    application.write()
    application.await_results()
    application.stop()


def test_it_misses_nothing(
    server: Server, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """Killed at work. Without faust, which now and then skips messages that wait for its start,
    with brokers of Kafka too."""
    application = Application("quix", server, tmp_path)
    launch(application)
    application.write()
    application.start_without_state()
    application.await_results()
    application.await_commits()
    application.write()
    application.kill()
    application.write()
    application.start_without_state()
    application.await_results()
    application.stop()
