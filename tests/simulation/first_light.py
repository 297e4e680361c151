"""A run: brokers, a producer with acks -1, a consumer, and faults that the seed chooses.

``python -m tests.simulation.first_light SEED [FAULTS [BROKERS]]`` prints its trace's hash.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from kafka08.admin import create_topic_with_assignment
from tests.simulation.broker import SimulatedBroker
from tests.simulation.clients import Client, Consumer, Ledger, Producer
from tests.simulation.scheduler import Trace
from tests.simulation.world import World

TOPIC = "t"
PARTITIONS = 2
_PATIENCE_SECONDS = 120


class Outcome(NamedTuple):
    """``seconds``: virtual time."""

    hash: str
    acknowledged: int
    seen: int
    deaths: int
    steps: int
    seconds: float


class Run:
    """One run in a directory that is empty. Raises AssertionError if something is lost, or does not
    end in time."""

    def __init__(self, directory: Path, seed: int, brokers: int, trace: Trace | None = None) -> None:
        self.world = World(directory, seed, brokers=brokers, trace=trace)
        self.ledger = Ledger()
        self._clients: list[Client] = []

    def run(self, faults: int) -> Outcome:
        try:
            with self.world:
                self._run(faults)
        except Exception as error:
            described = self.world.scheduler.describe(*self._processes())
            raise AssertionError(f"{error!r}\n{described}") from error
        scheduler, brokers = self.world.scheduler, self.world.brokers.values()
        return Outcome(
            scheduler.trace.hash,
            len(self.ledger.acknowledged),
            len(self.ledger.seen),
            sum(each.deaths for each in brokers),
            scheduler.steps,
            scheduler.now / 1e6,
        )

    def _processes(self) -> list:  # type: ignore[type-arg]
        return [each.runtime.process for each in self.world.brokers.values()]

    def _run(self, faults: int) -> None:
        world = self.world
        world.start()
        self._create_topic()
        hosts = [each.host for each in world.brokers.values()]
        producer = Producer(world.client("producer"), hosts, TOPIC, self.ledger)
        consumer = Consumer(world.client("consumer"), hosts, TOPIC, self.ledger)
        self._clients = [producer, consumer]
        for each in self._clients:
            each._runtime.spawn("loop", each.run)
        world.scheduler.run(
            lambda: len(self.ledger.acknowledged) > 10, seconds=_PATIENCE_SECONDS
        )
        for _ in range(faults):
            world.scheduler.run_for(world.scheduler.rng.uniform(0.0, 3.0))
            self._fault()
        self._end(producer, consumer)

    def _create_topic(self) -> None:
        runtime = self.world.client("admin")
        brokers = sorted(self.world.brokers)
        assignment = {
            number: [brokers[(number + at) % len(brokers)] for at in range(len(brokers))]
            for number in range(PARTITIONS)
        }
        task = runtime.spawn(
            "create", create_topic_with_assignment, self.world.session(runtime), TOPIC, assignment
        )
        self.world.scheduler.run(lambda: task.has_ended, seconds=_PATIENCE_SECONDS)

    def _fault(self) -> None:
        """Kill a broker, at once or in the middle of its work with files; or start all again."""
        world = self.world
        rng = world.scheduler.rng
        broker = world.brokers[rng.choice(sorted(world.brokers))]
        others = [each for each in world.brokers.values() if each is not broker]
        if not broker.is_running:
            broker.start()
            return
        if rng.random() < 0.2 and others:
            world.network.cut_one()
        elif rng.random() < 0.5:
            broker.kill()
        else:
            broker.kill_at(rng.randint(1, 30))

    def _end(self, producer: Producer, consumer: Consumer) -> None:
        """All faults end: within a time everything must be as it was promised."""
        world = self.world
        for broker in world.brokers.values():
            broker.disk.crash_at = -1
        world.scheduler.run_for(0.001)
        for broker in world.brokers.values():
            if not broker.is_running:
                broker.start()
        self._await(lambda: all(each.has_started for each in world.brokers.values()))
        producer.stopping = True
        self._await(lambda: not producer._runtime.process.tasks)
        self._await(lambda: not self.ledger.lost)
        consumer.stopping = True
        self._await(lambda: not consumer._runtime.process.tasks)
        for broker in world.brokers.values():
            self._stop(broker)

    def _await(self, done) -> None:  # type: ignore[no-untyped-def]
        self.world.scheduler.run(done, seconds=_PATIENCE_SECONDS)

    def _stop(self, broker: SimulatedBroker) -> None:
        task = broker.stop()
        self._await(lambda: task.has_ended)
        left = [str(each) for each in broker.runtime.process.tasks.values()]
        assert not left, f"{broker.host} has stopped and leaves {left}"


def main(argv: list[str]) -> int:
    seed, faults, brokers = (int(each) for each in [*argv, "20", "2"][:3]) if argv else (0, 20, 2)
    with tempfile.TemporaryDirectory() as directory:
        print(Run(Path(directory), seed, brokers).run(faults))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
