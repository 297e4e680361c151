"""A run: brokers, a producer with acks -1, a consumer, and faults that the seed chooses.

``python -m tests.simulation.run SEED ...`` prints the outcome of each seed with the hash of its
trace. Faults end, then all brokers are started, and within a time everything must be as was
promised: see ``SimulatedRun.settle``. A promise that is broken ends it with an error.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kafka08.admin import create_topic_with_assignment
from tests.simulation import checks, faults, loads
from tests.simulation.broker import SimulatedBroker
from tests.simulation.loads import Clients
from tests.simulation.scheduler import SECOND, Trace
from tests.simulation.watch import Watchman
from tests.simulation.world import SimulatedWorld

TOPIC = "t"
PARTITIONS = 2
_PATIENCE_SECONDS = 120
_CALM_SECONDS = 5.0
_COMPARED_EVERY = 5
"""After so many faults the logs of all replicas are compared."""


class RunOutcome(NamedTuple):
    """Messages ``acknowledged`` by the isr, ``hoped``: by the leader alone, ``dashed``: those of
    them that were lost. ``steps``: of tasks; ``seconds``: virtual time; ``faults``: how often each
    came."""

    hash: str
    acknowledged: int
    hoped: int
    dashed: int
    seen: int
    steps: int
    seconds: float
    faults: dict[str, int]


class SimulatedRun:
    """One run in an empty directory."""

    def __init__(
        self, directory: Path, seed: int, *, count: int, trace: Trace | None = None
    ) -> None:
        self.world = SimulatedWorld(directory, seed, count=count, trace=trace)
        self.faults: Counter[str] = Counter()
        self.clients = Clients(self.world, TOPIC, [])
        self._rng = self.world.scheduler.rng

    def run(self, count: int) -> RunOutcome:
        """With so many faults. Raises AssertionError, with the end of the trace, if a promise was
        broken or something does not end in time."""
        scheduler = self.world.scheduler
        try:
            with self.world:
                self._run(count)
        except Exception as error:
            alive = [each.runtime.process for each in self.world.brokers.values()]
            raise AssertionError(f"{error!r}\n{scheduler.describe(*alive)}") from error
        ledger = self.clients.ledger
        return RunOutcome(
            scheduler.trace.hash,
            len(ledger.acknowledged),
            len(ledger.hoped),
            ledger.dashed,
            len(ledger.seen),
            scheduler.steps,
            scheduler.now / SECOND,
            dict(sorted(self.faults.items())),
        )

    def _run(self, count: int) -> None:
        world = self.world
        world.scheduler.look = Watchman(world).look
        world.start()
        self.create_topic(world)
        clients = self.clients = Clients(world, TOPIC, loads.drawn(world))
        clients.start()
        self._await(lambda: clients.are_under_way)
        for number in range(count):
            world.scheduler.run_for(self._rng.choice((0.05, 0.5, 5.0)) * self._rng.random())
            self.faults[faults.draw(world)] += 1
            if number % _COMPARED_EVERY == 0:
                checks.check_agreement(world)
        self.settle()
        clients.calm_down()
        world.scheduler.run_for(_CALM_SECONDS)
        clients.stop()
        self._await(lambda: clients.have_stopped)
        clients.check()
        self._await_nothing_left()
        self._await(lambda: checks.is_replicated(world))
        checks.check_agreement(world)
        for broker in world.brokers.values():
            self._stop(broker)
        self._await(lambda: not world.sessions.ensemble.tree.ephemerals)

    def _await_nothing_left(self) -> None:
        for _ in range(_PATIENCE_SECONDS):
            left = checks.leftovers(self.world)
            if not left:
                starts = self.clients.ledger.starts
                left += checks.undeleted(self.world, TOPIC, starts)
            if not left:
                return
            self.world.scheduler.run_for(1.0)
        raise AssertionError(f"there is still: {', '.join(left)}")

    def _await(self, done: Callable[[], bool]) -> None:
        self.world.scheduler.run(done, seconds=_PATIENCE_SECONDS)

    @staticmethod
    def create_topic(world: SimulatedWorld) -> None:
        """TOPIC, with all brokers as replicas."""
        runtime = world.client("admin")
        brokers = sorted(world.brokers)
        assignment = {
            number: [brokers[(number + at) % len(brokers)] for at in range(len(brokers))]
            for number in range(PARTITIONS)
        }

        def create() -> None:
            session = world.sessions.connect(runtime)
            create_topic_with_assignment(session, TOPIC, assignment)
            session.close()

        task = runtime.spawn("create", create)
        world.scheduler.run(lambda: task.has_ended, seconds=_PATIENCE_SECONDS)

    def _stop(self, broker: SimulatedBroker) -> None:
        """Nothing of it may stay at work."""
        task, tasks = broker.stop(), broker.runtime.process.tasks
        self._await(lambda: task.has_ended)
        self._await(lambda: not tasks)

    def settle(self) -> None:
        """End all faults and wait until each partition has its leader and its whole isr."""
        world = self.world
        faults.end_all(world)
        self._await(lambda: not any(each.is_ending for each in world.brokers.values()))
        for broker in world.brokers.values():
            if not broker.is_running:
                broker.start()
        self._await(lambda: all(each.has_started for each in world.brokers.values()))
        self._await(lambda: checks.is_at_rest(world, TOPIC))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.run", description=__doc__)
    parser.add_argument("seeds", type=int, nargs="+", metavar="SEED")
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--brokers", type=int, default=2)
    parser.add_argument("--trace", action="store_true", help="print each event, and what is logged")
    options = parser.parse_args(argv)
    if not options.trace:
        logging.disable(logging.CRITICAL)
    for seed in options.seeds:
        trace = Trace(print if options.trace else None)
        with tempfile.TemporaryDirectory() as directory:
            run = SimulatedRun(Path(directory), seed, count=options.brokers, trace=trace)
            print(f"seed {seed}: {run.run(options.faults)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
