"""Applications of Kafka Streams: repartitions, windows, joins, state that outlives kill -9."""

from __future__ import annotations

import shutil
import time
import uuid
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from integration import builds
from integration.harness import Broker, Process
from integration.modern import ModernBroker
from integration.programs import streams, topics
from integration.programs.topics import Sent
from integration.wire import wait_until

WAIT_S = 120.0
PARTITIONS = 2
KEYS, CUSTOMERS, ROUNDS = 10, 4, 30
ROUND_MS = 1000
TOO_LATE = 7  # payments of this key come a minute later

Server = Broker | ModernBroker


class Expected:
    """The results of the rounds so far: in each, every key has an order; in some, a payment."""

    def __init__(self) -> None:
        # Changelogs of windows lose what is old.
        self.first_time = round(time.time()) * 1000
        self.orders: list[Sent] = []
        self.payments: list[Sent] = []

    def add(self, rounds: range) -> tuple[list[Sent], list[Sent]]:
        orders, payments = [], []
        for at in rounds:
            for key in range(KEYS):
                number, moment = at * KEYS + key, self.first_time + at * ROUND_MS
                orders.append(Sent(f"k{key}", f"c{number % CUSTOMERS} {number}", moment))
                late = 60_000 if key == TOO_LATE else 0
                if at % 10 == 0:
                    payments.append(Sent(f"k{key}", f"p{number}", moment + late))
        self.orders += orders
        self.payments += payments
        return orders, payments

    def numbers(self) -> dict[str, str]:
        found: dict[str, list[int]] = defaultdict(list)
        for order in self.orders:
            customer, number = order.value.split()
            found[customer].append(int(number))
        return _texts(found)

    def windows(self) -> dict[str, str]:
        found: dict[str, list[int]] = defaultdict(list)
        for order in self.orders:
            begin = order.time - order.time % 10_000
            found[f"{order.key}@{begin}"].append(int(order.value.split()[1]))
        return _texts(found)

    def paid(self) -> set[tuple[str, str]]:
        return {
            (order.key, f"{order.value} {payment.value}")
            for payment in self.payments
            for order in self.orders
            if order.key == payment.key and abs(order.time - payment.time) <= 5000
        }


def _texts(numbers: dict[str, list[int]]) -> dict[str, str]:
    return {key: ",".join(map(str, sorted(each))) for key, each in numbers.items()}


class Application(Process):
    def __init__(self, version: str, server: Server, name: str, directory: Path) -> None:
        self.state = directory / "state"
        command = streams.command(version, server.address, name, self.state)
        super().__init__(f"Streams {version}", command, directory)

    @property
    def restored(self) -> dict[str, int]:
        """Records by store."""
        found: dict[str, int] = defaultdict(int)
        for line in self.log.splitlines():
            if line.startswith("restored "):
                _, store, _, count = line.split()
                found[store] += int(count)
        return found


@pytest.mark.parametrize(
    ("version", "keeps_state"),
    [
        pytest.param("3.9.1", False),
        pytest.param("3.9.1", True, marks=pytest.mark.slow),
        pytest.param("4.4.0", False, marks=pytest.mark.slow),
        pytest.param("4.4.0", True, marks=pytest.mark.slow),
    ],
)
def test_it_goes_on_after_kill_9(
    version: str,
    keeps_state: bool,
    server: Server,
    tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:
    """With its state directory, and without: then from the changelogs alone."""
    name, expected = f"streams-{uuid.uuid4().hex[:8]}", Expected()
    try:
        application = Application(version, server, name, tmp_path)
    except builds.MissingError as error:
        pytest.skip(str(error))
    launch(application)
    for topic in ("orders", "payments", "numbers", "windows", "paid"):
        server.create_topic(f"{name}-{topic}", PARTITIONS)

    def write(rounds: range) -> None:
        orders, payments = expected.add(rounds)
        topics.write(server.address, f"{name}-orders", orders)
        topics.write(server.address, f"{name}-payments", payments)

    def results() -> bool:
        assert application.alive, application.log[-3000:]
        return (
            dict(topics.read(server.address, f"{name}-numbers")) == expected.numbers()
            and dict(topics.read(server.address, f"{name}-windows")) == expected.windows()
            and set(topics.read(server.address, f"{name}-paid")) == expected.paid()
        )

    application.spawn()
    write(range(ROUNDS))
    wait_until("results", WAIT_S, results)
    write(range(ROUNDS, 2 * ROUNDS))
    application.kill()
    write(range(2 * ROUNDS, 3 * ROUNDS))
    if not keeps_state:
        shutil.rmtree(application.state)
    application.spawn()
    wait_until("results of all", WAIT_S, results)
    if not keeps_state:
        assert set(application.restored) == streams.STORES
        assert all(application.restored.values()), application.restored
    write(range(3 * ROUNDS, 3 * ROUNDS + 1))
    wait_until("results of what came later", WAIT_S, results)
    assert application.stop() == 143
    assert "state ERROR" not in application.log
