"""The faults of a run: a table of what may happen to a cluster, and how all of it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.broker import SimulatedBroker
from tests.simulation.scheduler import SECOND
from tests.simulation.world import SimulatedWorld


class Fault(NamedTuple):
    """``weight``: how often it is drawn. ``strike`` begins it; it must not wait."""

    weight: int
    strike: Callable[[SimulatedWorld, SimulatedBroker], object]


def draw(world: SimulatedWorld) -> str:
    """Begin a fault that the seed picks, of a broker that it picks; its name."""
    rng = world.scheduler.rng
    name = rng.choice(_DRAWN)
    world.scheduler.note(name, "fault")
    FAULTS[name].strike(world, rng.choice(list(world.brokers.values())))
    return name


def end_all(world: SimulatedWorld) -> None:
    """No fault lasts, and none is still to come. Brokers that have ended stay so."""
    world.network.heal_all()
    for broker in world.brokers.values():
        broker.disk.crash_at = -1


# Processes


def _start(world: SimulatedWorld, _: SimulatedBroker) -> None:
    """All brokers that do not run."""
    for each in world.brokers.values():
        if not each.is_running:
            each.start()


def _kill(_: SimulatedWorld, broker: SimulatedBroker) -> None:
    broker.kill()


def _kill_at_a_change(world: SimulatedWorld, broker: SimulatedBroker) -> None:
    broker.kill_at(world.scheduler.rng.randint(1, 30))


def _restart(_: SimulatedWorld, broker: SimulatedBroker) -> None:
    if broker.has_started and not broker.is_ending:
        broker.stop()


# Connections


def _ways(world: SimulatedWorld, broker: SimulatedBroker) -> tuple[str, str]:
    """From the broker to another host, or back."""
    rng = world.scheduler.rng
    hosts = [each.host for each in world.brokers.values() if each is not broker]
    other = rng.choice([*hosts, "producer", "consumer"])
    return (broker.host, other) if rng.random() < 0.5 else (other, broker.host)


def _cut(world: SimulatedWorld, _: SimulatedBroker) -> None:
    world.network.cut_one()


def _part(world: SimulatedWorld, broker: SimulatedBroker) -> None:
    """For some seconds nothing arrives on one way."""
    source, target = _ways(world, broker)
    world.network.partition(source, target)
    length = world.scheduler.rng.randrange(10 * SECOND)
    world.scheduler.after(length, lambda: world.network.heal(source, target))


def _slow_down(world: SimulatedWorld, broker: SimulatedBroker) -> None:
    """One way takes long from now on."""
    link = world.network.link(*_ways(world, broker))
    link.slowest = world.scheduler.rng.choice((2_000, 100_000, 1_000_000))


# Clocks


def _jump(world: SimulatedWorld, broker: SimulatedBroker) -> None:
    broker.clock.jump(world.scheduler.rng.randint(-600_000, 600_000))


FAULTS = {
    "kill": Fault(3, _kill),
    "kill_at_a_change": Fault(4, _kill_at_a_change),
    "restart": Fault(1, _restart),
    "cut": Fault(3, _cut),
    "part": Fault(3, _part),
    "slow_down": Fault(1, _slow_down),
    "jump": Fault(1, _jump),
    "start": Fault(3, _start),
}
_DRAWN = [name for name, fault in FAULTS.items() for _ in range(fault.weight)]
