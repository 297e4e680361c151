"""Kafka Streams with exactly_once_v2: each record counts once, whatever is killed."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from integration import builds
from integration.harness import Broker, Process
from integration.modern import ModernBroker
from integration.programs import exactly_once, topics
from integration.programs.topics import Sent
from integration.wire import wait_until

WAIT_S = 120.0
PARTITIONS = 2
CUSTOMERS, ROUND = 4, 2000

Server = Broker | ModernBroker


class Application(Process):
    def __init__(self, version: str, server: Server, name: str, directory: Path) -> None:
        self.state = directory / "state"
        command = exactly_once.command(version, server.address, name, self.state, 1)
        super().__init__(f"Streams {version}", command, directory)


def results(numbers: range) -> dict[str, list[str]]:
    """All that a reader of committed records sees of each customer: one result for each count, the
    last of those that a commit has."""
    sums: dict[str, list[str]] = {}
    for customer in range(CUSTOMERS):
        own = [number for number in numbers if number % CUSTOMERS == customer]
        sums[f"c{customer}"] = [f"{len(own)} {sum(own)}"]
    return sums


@pytest.mark.scenario("transactions-42")
@pytest.mark.parametrize("version", ["3.9.1", pytest.param("4.4.0", marks=pytest.mark.slow)])
def test_each_record_counts_once(
    version: str, server: Server, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """It is killed while it works, with its state and without it."""
    name = f"once-{uuid.uuid4().hex[:8]}"
    try:
        application = Application(version, server, name, tmp_path)
    except builds.MissingError as error:
        pytest.skip(str(error))
    launch(application)
    for topic in ("orders", "sums"):
        server.create_topic(f"{name}-{topic}", PARTITIONS)

    def write(numbers: range) -> None:
        orders = [Sent(f"k{n % 10}", f"c{n % CUSTOMERS} {n}", 0) for n in numbers]
        topics.write(server.address, f"{name}-orders", orders)

    def counted() -> dict[str, str]:
        assert application.alive, application.log[-3000:]
        return dict(topics.read(server.address, f"{name}-sums"))

    def has_begun() -> bool:
        return bool(counted())

    application.spawn()
    for number in range(3):
        write(range(number * ROUND, (number + 1) * ROUND))
        wait_until("results", WAIT_S, has_begun)
        application.kill()
        if number == 1:
            shutil.rmtree(application.state)
        application.spawn()
    last = {customer: texts[-1] for customer, texts in results(range(3 * ROUND)).items()}
    wait_until("results of all", WAIT_S, lambda: counted() == last)
    assert_rises(topics.read(server.address, f"{name}-sums"))
    assert application.stop() == 143
    assert "state ERROR" not in application.log


def assert_rises(found: list[tuple[str, str]]) -> None:
    """No count comes twice, and none goes back: what a kill undid was never to be seen."""
    counts: dict[str, int] = {}
    for customer, text in found:
        count = int(text.split()[0])
        assert count > counts.get(customer, 0), (customer, text)
        counts[customer] = count
