"""A run: brokers, a producer with acks -1, a consumer, and faults that the seed chooses.

``python -m tests.simulation.run SEED ...`` prints the outcome of each seed with the hash of its
trace. Faults end, then all brokers are started, and within a time everything must be as was
promised: see ``SimulatedRun.settle``. A promise that is broken ends it with an error.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from kafka08.admin import create_topic_with_assignment
from kafka08.common import TopicPartition
from tests.simulation import (
    checks,
    conditions,
    departure,
    faults,
    kinds,
    list_load,
    loads,
)
from tests.simulation.broker import SimulatedBroker
from tests.simulation.conditions import Conditions
from tests.simulation.faults import Scene
from tests.simulation.following import Follower
from tests.simulation.keyed_ledger import POLICIES
from tests.simulation.loads import Clients
from tests.simulation.plan import FAULTS, Plan, draw
from tests.simulation.scheduler import SECOND, SimulatedTask, Trace
from tests.simulation.watch import Watchman
from tests.simulation.world import SimulatedWorld

TOPIC = "t"
_MEMORY = "/dev/shm"
PARTITIONS = 2
_PATIENCE_SECONDS = 120
_CALM_SECONDS = 5.0
_LEAVES = 0.3
"""Of the runs: a broker leaves in the end."""
IN_MEMORY = _MEMORY if os.access(_MEMORY, os.W_OK) else None
"""Where the disks of a run are best: what they keep is the run's own business."""
_SEEN_SECONDS = 1.0
"""Until all have seen which connections have ended."""
_PAUSE, _BETWEEN_CHANGES = 1.0, 0.2
_COMPARED_EVERY = 5
"""After so many faults the logs of all replicas are compared."""


class Exposed(Exception):
    """A broker that has lost its power leads before it has caught up: no promise holds from here
    on. See Durability."""


class RunOutcome(NamedTuple):
    """Messages ``acknowledged`` by the isr, ``hoped``: by the leader alone, ``dashed``: those of
    them that were lost. ``steps``: of tasks; ``seconds``: virtual time; ``faults``: how often each
    came. ``is_whole``: the run did not end before its time, when nothing was promised any more."""

    hash: str
    acknowledged: int
    hoped: int
    dashed: int
    seen: int
    steps: int
    seconds: float
    faults: dict[str, int]
    is_whole: bool


class SimulatedRun:
    """One run in an empty directory. ``optional``: the clients without which it could also be.
    ``partitions`` and ``replicas``: of the topic that all use. ``leaves``: a broker may leave for
    good in the end."""

    def __init__(
        self,
        directory: Path,
        plan: Plan,
        trace: Trace | None = None,
        drawn: Conditions | None = None,
    ) -> None:
        self.conditions = drawn = drawn or conditions.draw(plan.seed)
        self.world = SimulatedWorld(
            directory,
            plan.seed,
            count=plan.brokers,
            kinds=self._kinds(plan),
            settings=drawn.settings,
            trace=trace,
        )
        self.plan = plan
        self.partitions, self.replicas = PARTITIONS, plan.brokers
        # Two must be left: with min.insync.replicas 2 one alone takes no writes.
        self.leaves = plan.brokers > 2 and Random(f"{plan.seed}/leave").random() < _LEAVES
        self.faults: Counter[str] = Counter()
        self.clients = Clients(self.world, TOPIC, [])
        self.optional: tuple[str, ...] = ()

    def _kinds(self, plan: Plan) -> tuple[str, ...]:
        """Of today, if a client that is to be there needs that."""
        if all(loads.LOADS[each].legacy for each in self.conditions.loads):
            return kinds.draw(plan.seed, plan.brokers)
        return (kinds.TODAY,) * plan.brokers

    def run(self) -> RunOutcome:
        """Raises AssertionError, with the end of the trace, if a promise was broken or something
        does not end in time."""
        scheduler = self.world.scheduler
        try:
            with self.world:
                is_whole = self._run_while_promised()
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
            is_whole,
        )

    def _run_while_promised(self) -> bool:
        """Whether it came to its end."""
        try:
            self._run()
        except Exposed:
            return False
        return True

    def _look(self, watchman: Watchman, task: SimulatedTask | None) -> None:
        """After each step."""
        if self.world.durability.exposed:
            self.world.scheduler.look = lambda task: None
            raise Exposed
        watchman.look(task)

    def _run(self) -> None:
        world = self.world
        watchman = Watchman(world)
        watchman.exempt = world.durability.behind
        world.scheduler.look = partial(self._look, watchman)
        world.start()
        names = self.drawn_loads()
        self.create_topic(world, partitions=self.partitions, replicas=self.replicas)
        policy = Random(f"{self.plan.seed}/policy").choice(POLICIES)
        if loads.KEYED in names:
            self.create_topic(world, loads.KEYED, partitions=1, settings=policy.settings)
        if loads.LISTS in names:
            compacts = self.conditions.compacts
            settings = list_load.settings(self.plan.seed, compacts=compacts)
            partitions = list_load.PARTITIONS
            self.create_topic(world, loads.LISTS, partitions=partitions, settings=settings)
        names = [each for each in names if each not in self.plan.without]
        clients = self.clients = Clients(world, TOPIC, names, policy)
        clients.start()
        self._await(lambda: clients.are_under_way)
        self.carry_out(world.scheduler.now)
        self.settle()
        clients.calm_down()
        world.scheduler.run_for(_CALM_SECONDS)
        if self.leaves:
            self._lose_a_broker()
        clients.stop()
        self._await(lambda: clients.have_stopped)
        clients.check()
        self._await_nothing(self._left, _PAUSE)
        self._await(lambda: checks.is_replicated(world))
        checks.check_agreement(world)
        checks.check_transactions(world)
        for broker in world.staying:
            self._stop(broker)
        self._await(lambda: not world.sessions.ensemble.tree.ephemerals)

    def carry_out(self, begun: int) -> None:
        """The faults, at their times since ``begun``, without the time of rest between them. Until
        the next would come."""
        world = self.world
        for fault in self.plan.faults:
            world.scheduler.run_to(begun + round(fault.at * SECOND))
            with world.scheduler.chance(fault.seed):
                name = faults.draw(world, self.conditions.faults, amid=self.conditions.amid)
                self.faults[name] += 1
            if fault.number % _COMPARED_EVERY == 0:
                checks.check_agreement(world)
            if self.conditions.rests_every and fault.number % self.conditions.rests_every == 0:
                begun += self._rest()
        world.scheduler.run_to(begun + round(self.plan.seconds * SECOND))

    def _rest(self) -> int:
        """Let the cluster come to rest; how long that took."""
        scheduler = self.world.scheduler
        began = scheduler.now
        self.settle()
        self._await_nothing(self._kept, _BETWEEN_CHANGES)
        held = checks.open_transactions(self.world)
        self._await(lambda: held.isdisjoint(checks.open_transactions(self.world)))
        checks.check_agreement(self.world)
        checks.check_transactions(self.world)
        return scheduler.now - began

    def _kept(self) -> list[str]:
        """A line for each deleted record or topic that is still there."""
        starts = self.clients.ledger.starts
        return [*checks.undeleted(self.world, TOPIC, starts), *checks.strays(self.world)]

    def _await_nothing(self, left: Callable[[], list[str]], pause: float) -> None:
        """``left`` is asked once in so many seconds."""
        for _ in range(round(_PATIENCE_SECONDS / pause)):
            found = left()
            if not found:
                return
            self.world.scheduler.run_for(pause)
        raise AssertionError(f"there is still: {', '.join(found)}")

    def drawn_loads(self) -> list[str]:
        """The names of the clients, with those that the plan leaves out."""
        drawn = loads.drawn(self.world, self.conditions.loads, only=self.conditions.only)
        self.optional = tuple(each for each in drawn if each not in loads.ALWAYS)
        return drawn

    def _lose_a_broker(self) -> None:
        """One leaves for good, if others have all that is acknowledged. Clients go on meanwhile,
        but for those that begin what would never end without it."""
        world, administrators = self.world, self.clients.administrators
        for each in administrators:
            each.stopping = True
        self._await(lambda: all(each.has_stopped for each in administrators))
        self._await(lambda: not [*checks.unfinished(world)])
        broker = world.scheduler.rng.choice(world.staying)
        faults.FAULTS["leave"].strike(Scene(world, broker, world.scheduler.rng))
        if not broker.is_gone:
            return
        self.faults["leave"] += 1
        self.clients.leave_out(broker.host)
        runtime = world.client("operator")
        task = runtime.spawn("move", departure.move_away, world, runtime, broker)
        self._await(lambda: task.has_ended)

    def _left(self) -> list[str]:
        return checks.leftovers(self.world) or self._kept()

    def _await(self, done: Callable[[], bool]) -> None:
        self.world.scheduler.run(done, seconds=_PATIENCE_SECONDS)

    @staticmethod
    def create_topic(
        world: SimulatedWorld,
        name: str = TOPIC,
        *,
        partitions: int = PARTITIONS,
        replicas: int | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """With so many ``replicas``, or all brokers."""
        runtime = world.client("admin")
        brokers = sorted(world.brokers)
        assignment = {
            number: [
                brokers[(number + at) % len(brokers)] for at in range(replicas or len(brokers))
            ]
            for number in range(partitions)
        }

        def create() -> None:
            session = world.sessions.connect(runtime)
            create_topic_with_assignment(session, name, assignment, settings)
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
        world.scheduler.run_for(_SEEN_SECONDS)
        self._await(lambda: not any(each.is_ending for each in world.brokers.values()))
        self._await(lambda: faults.are_up(world))
        self._await(lambda: world.sessions.ensemble.serves_all)
        self._await(lambda: checks.is_at_rest(world, TOPIC))


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    follower = Follower(options.partition) if options.trace else None
    if follower is None:
        logging.disable(logging.CRITICAL)
    else:
        logging.basicConfig(level=logging.DEBUG, handlers=[follower])
    for seed in options.seeds:
        plan = draw(seed, faults=options.faults, brokers=options.brokers)
        plan = plan._replace(without=frozenset(options.without))
        if options.keep is not None:
            plan = plan.keeping({int(number) for number in options.keep})
        with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:
            run = SimulatedRun(Path(directory), plan, Trace(follower and follower.tell))
            if follower is not None:
                follower.scheduler = run.world.scheduler
            print(f"seed {seed}: {run.run()}", flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.run", description=__doc__)
    parser.add_argument("seeds", type=int, nargs="+", metavar="SEED")
    parser.add_argument("--faults", type=int, default=FAULTS)
    parser.add_argument("--brokers", type=int, help="the seed picks without it")
    parser.add_argument("--keep", type=_words, metavar="N,...", help="faults: only these")
    parser.add_argument("--without", type=_words, default=[], metavar="NAME,...", help="clients")
    parser.add_argument("--trace", action="store_true", help="print each event, and what is logged")
    parser.add_argument("--partition", type=_partition, metavar="T,N", help="trace this one alone")
    return parser


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition(",")
    return TopicPartition(topic, int(number))


def repeat_command(plan: Plan) -> str:
    """The command that runs it again."""
    numbers = [each.number for each in plan.faults]
    words = ["python -m tests.simulation.run", str(plan.seed), f"--brokers {plan.brokers}"]
    words.append(f"--faults {plan.drawn}")
    if len(numbers) < plan.drawn:
        words.append(f"--keep {','.join(map(str, numbers)) or ','}")
    if plan.without:
        words.append(f"--without {','.join(sorted(plan.without))}")
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
