"""The faults of a run: a table of what may happen to a cluster, and how all of it ends.

A third of them hit in the middle of something: at a change of a broker's files, at a decision of
ZooKeeper, at an arrival of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

from tests.simulation.aims import TRANSACTIONS
from tests.simulation.broker import SimulatedBroker
from tests.simulation.scheduler import SECOND
from tests.simulation.world import SimulatedWorld
from zk import znodes

_AT_A_MOMENT = 0.4
_MOST_MOMENTS = 30
_MOST_MARKERS = 3
_AMID_ARRIVALS = (1, 5, 30)
"""So many at most, about as the marker is on its way, or is copied to followers."""
_LONGEST_SECONDS = (1, 4, 15)
_ISOLATED_SECONDS = (2, 10, 25)
_SPLIT_SECONDS = (10, 15)
_LOST_SECONDS = (20, 50)
_BLIND_SECONDS = 3
_BACK_SECONDS = (1, 5)
_LATE_SECONDS = (1, 4)
_STOPPED_SECONDS = 4
_HELD_SECONDS = (4, 9)
"""A client has given up by then."""


class Scene(NamedTuple):
    """Where a fault happens: at ``broker``, which the seed picks. ``rng``: its source of chance."""

    world: SimulatedWorld
    broker: SimulatedBroker
    rng: Random


class Fault(NamedTuple):
    """``weight``: how often it is drawn, 0 while it comes only in runs with an aim. ``strike``
    begins it; it must not wait."""

    weight: int
    strike: Callable[[Scene], object]


def draw(world: SimulatedWorld, names: Sequence[str], *, amid: float = 0) -> str:
    """Begin a fault that the seed picks of ``names``, or plan it for a moment soon; its name.
    ``amid``: the chance that it hits one of those that are ending a transaction then."""
    rng = Random(world.scheduler.rng.random())
    name = rng.choice(names)
    broker = rng.choice(world.staying)
    strike = partial(_strike, name, Scene(world, broker, rng))
    if amid and rng.random() < amid:
        world.network.markers.after(
            rng.randint(1, _MOST_MARKERS), partial(_plan_amid, name, Scene(world, broker, rng))
        )
    elif rng.random() < _AT_A_MOMENT:
        ensemble, network = world.sessions.ensemble, world.network
        moments = rng.choice((broker.disk.changes, ensemble.decisions, network.arrivals))
        moments.after(rng.randint(1, _MOST_MOMENTS), strike)
    else:
        strike()
    return name


def _plan_amid(name: str, scene: Scene) -> None:
    """Soon after markers were sent, at their coordinator, or the leader that is to have them, or a
    third broker."""
    world, rng = scene.world, scene.rng
    ends = [each for each in world.staying if each.host in (world.network.marker_way or ())]
    struck = scene._replace(broker=rng.choice((*ends, scene.broker)))
    arrivals = rng.randint(1, rng.choice(_AMID_ARRIVALS))
    world.network.arrivals.after(arrivals, partial(_strike, name, struck))


def _strike(name: str, scene: Scene) -> None:
    scene.world.durability.review()
    scene.world.scheduler.note(f"{name} of {scene.broker.host}", "fault")
    KINDS[name].strike(scene)


def end_all(world: SimulatedWorld) -> None:
    """No fault lasts, and none is still to come. Brokers that have ended stay so."""
    world.rolling.end()
    world.network.heal_all()
    world.sessions.ensemble.end_faults()
    for broker in world.brokers.values():
        broker.disk.repair()
        broker.resume()


def are_up(world: SimulatedWorld) -> bool:
    """Whether all brokers that are to come back have started, with all their disks. Starts those
    that do not run, so it is to be asked again and again."""
    for broker in world.staying:
        if broker.has_lost_a_directory:
            broker.kill()
        elif not broker.is_running:
            broker.start()
    return all(each.has_started and not each.is_ending for each in world.staying)


def _for_a_time(scene: Scene, end: Callable[[], object]) -> None:
    seconds = scene.rng.choice(_LONGEST_SECONDS)
    scene.world.scheduler.after(scene.rng.randrange(seconds * SECOND), end)


# Processes and machines


def _start(scene: Scene) -> None:
    """All brokers that do not run."""
    for each in scene.world.staying:
        if not each.is_running:
            each.start()


def _calm(scene: Scene) -> None:
    """Nothing is wrong, until the next fault."""
    end_all(scene.world)
    _start(scene)


def _kill(scene: Scene) -> None:
    scene.broker.kill()


def _kill_at_a_change(scene: Scene) -> None:
    """The change may be done in part."""
    scene.broker.kill_at(scene.rng.randint(1, _MOST_MOMENTS))


def _crash(scene: Scene) -> None:
    """The process dies, and is started again soon."""
    scene.broker.kill()
    seconds = scene.rng.choice(_BACK_SECONDS)
    scene.world.scheduler.after(scene.rng.randrange(seconds * SECOND), partial(_start_again, scene))


def _start_again(scene: Scene) -> None:
    if not scene.broker.is_running and not scene.broker.is_gone:
        scene.broker.start()


def _restart(scene: Scene) -> None:
    if scene.broker.has_started and not scene.broker.is_ending:
        scene.broker.stop()


def _roll(scene: Scene) -> None:
    """All brokers are restarted, one after the other."""
    scene.world.rolling.begin(scene.world.staying)


def _bounce(scene: Scene) -> None:
    """The process dies and is started at once, while the controller stands still: it sees nothing
    but the new one."""
    world, broker, after = scene.world, scene.broker, scene.world.scheduler.after
    controller = world.controller
    if controller is not None and controller is not broker:
        controller.pause()
        after(_BLIND_SECONDS * SECOND, controller.resume)
    broker.kill()
    world.sessions.ensemble.expire_all(broker.host)
    after(SECOND // 10, partial(_start, scene))


def _power_cut(scene: Scene) -> None:
    """If nothing acknowledged is lost, or others have it; else the process dies alone."""
    if scene.world.durability.may_lose(scene.broker):
        _cut_power(scene, scene.broker)
    else:
        scene.broker.kill(silently=True)


def _power_cut_behind_a_cut(scene: Scene) -> None:
    """The next one that cuts a log has no power soon after it has stored a later high watermark."""
    for each in scene.world.staying:
        struck = partial(_power_cut, scene._replace(broker=each))
        changes = partial(each.disk.changes.after, scene.rng.randint(1, _MOST_MOMENTS), struck)
        each.disk.cuts.after(1, partial(each.disk.checkpoints.after, 1, changes))


def _black_out(scene: Scene) -> None:
    """All machines are without power."""
    for each in scene.world.staying:
        _cut_power(scene, each)


def _kill_all(scene: Scene) -> None:
    """At once; with the power of their machines, if that loses nothing acknowledged."""
    if scene.world.durability.is_synced:
        _black_out(scene)
    else:
        for each in scene.world.staying:
            each.kill(silently=True)


def _cut_power(scene: Scene, broker: SimulatedBroker) -> None:
    scene.world.durability.power_cut(broker)
    broker.power_cut()


def _pause(scene: Scene) -> None:
    scene.broker.pause()
    _for_a_time(scene, scene.broker.resume)


def _leave(scene: Scene) -> None:
    """One broker never comes back, unless something depends on it."""
    if scene.world.durability.may_leave(scene.broker):
        scene.world.durability.lost(scene.broker)
        scene.broker.leave()


# Connections


def _ways(scene: Scene) -> tuple[str, str]:
    """From the broker to another host, or back."""
    host, other = scene.broker.host, scene.rng.choice(_others(scene))
    return (host, other) if scene.rng.random() < 0.5 else (other, host)


def _peers(scene: Scene) -> list[str]:
    """The other brokers."""
    return [each.host for each in scene.world.brokers.values() if each is not scene.broker]


def _others(scene: Scene) -> list[str]:
    """The other brokers, and the clients."""
    return [*_peers(scene), *scene.world.client_hosts]


def _cut(scene: Scene) -> None:
    scene.world.network.cut_one()


def _reset(scene: Scene) -> None:
    """All connections of the broker, but those to ZooKeeper."""
    scene.world.network.cut_all(scene.broker.host)


def _bring_down(scene: Scene, *ways: tuple[str, str]) -> Callable[[], None]:
    """Nothing arrives on these ways until the result is called, which brings all of them up."""
    network = scene.world.network
    for way in ways:
        network.partition(*way)

    def bring_up() -> None:
        for way in ways:
            network.heal(*way)

    return bring_up


def _part(scene: Scene) -> None:
    """For some seconds nothing arrives on one way."""
    _for_a_time(scene, _bring_down(scene, _ways(scene)))


def _hold_markers(scene: Scene) -> None:
    """The next markers arrive late, while their coordinator stops and another takes its place."""
    scene.world.network.markers.after(1, partial(_hold_and_stop, scene))


def _hold_and_stop(scene: Scene) -> None:
    world, rng = scene.world, scene.rng
    assert world.network.marker_way is not None
    bring_up = _bring_down(scene, world.network.marker_way)
    world.scheduler.after(rng.randrange(rng.choice(_LATE_SECONDS) * SECOND), bring_up)
    for each in world.staying:
        if each.host == world.network.marker_way[0] and each.has_started and not each.is_ending:
            each.stop()
            again = partial(_start_again, scene._replace(broker=each))
            world.scheduler.after(_STOPPED_SECONDS * SECOND, again)


def _hold_batches(scene: Scene) -> None:
    """The batches of a client of transactions arrive at the broker when it has given up."""
    clients = [each for each in scene.world.client_hosts if each in TRANSACTIONS]
    if clients:
        bring_up = _bring_down(scene, (scene.rng.choice(clients), scene.broker.host))
        scene.world.scheduler.after(scene.rng.randrange(*_HELD_SECONDS) * SECOND, bring_up)


def _silence(scene: Scene) -> None:
    """For some seconds nothing of the broker arrives anywhere, but for ZooKeeper."""
    for other in _others(scene):
        _for_a_time(scene, _bring_down(scene, (scene.broker.host, other)))


def _isolate(scene: Scene) -> None:
    """For a time nothing arrives at the broker, or of it, also for ZooKeeper: mostly for longer
    than its session lasts. Its connections may end with it: what is under way does not arrive
    later. One that is alone already stays so."""
    host = scene.broker.host
    if scene.world.sessions.ensemble.is_cut(host):
        return
    if scene.rng.random() < 0.5:
        scene.world.network.cut_all(host)
    _cut_off(scene, _others(scene), scene.rng.choice(_ISOLATED_SECONDS))


def _split(scene: Scene) -> None:
    """The same, but clients still reach it, and it takes what it cannot replicate."""
    if not scene.world.sessions.ensemble.is_cut(scene.broker.host):
        _cut_off(scene, _peers(scene), scene.rng.choice(_SPLIT_SECONDS))


def _cut_off(scene: Scene, others: Sequence[str], seconds: int) -> None:
    """From ZooKeeper and from these hosts."""
    ensemble, host = scene.world.sessions.ensemble, scene.broker.host
    ways = [way for other in others for way in ((host, other), (other, host))]
    bring_up = _bring_down(scene, *ways)
    ensemble.cut(host)

    def rejoin() -> None:
        bring_up()
        ensemble.heal(host)

    scene.world.scheduler.after(seconds * SECOND, rejoin)


def _slow_down(scene: Scene) -> None:
    """One way takes long from now on."""
    link = scene.world.network.link(*_ways(scene))
    link.slowest = scene.rng.choice((2_000, 100_000, 1_000_000))


def _slow_answers(scene: Scene) -> None:
    """All ways from the broker to the others take long from now on."""
    for peer in _peers(scene):
        scene.world.network.link(scene.broker.host, peer).slowest = 1_000_000


# ZooKeeper


def _a_server(scene: Scene) -> int:
    return scene.rng.randrange(len(scene.world.sessions.ensemble.servers))


def _expire(scene: Scene) -> None:
    """Any session, also of a client."""
    ensemble = scene.world.sessions.ensemble
    if ensemble.sessions:
        ensemble.expire(scene.rng.choice(sorted(ensemble.sessions)))


def _stop_server(scene: Scene) -> None:
    """A second one at the same time takes the quorum."""
    ensemble, number = scene.world.sessions.ensemble, _a_server(scene)
    ensemble.stop(number)
    _for_a_time(scene, partial(ensemble.start, number))


def _isolate_server(scene: Scene) -> None:
    """It serves reads for a while, but the others do not know of it."""
    ensemble, number = scene.world.sessions.ensemble, _a_server(scene)
    ensemble.isolate(number)
    _for_a_time(scene, partial(ensemble.rejoin, number))


def _lag_server(scene: Scene) -> None:
    """Reads from it are old from now on."""
    server = scene.world.sessions.ensemble.servers[_a_server(scene)]
    server.lag = scene.rng.choice((None, (0.0, 1.0), (1.0, 3.0)))


def _cut_from_zookeeper(scene: Scene) -> None:
    """For some seconds, one way or both."""
    ensemble = scene.world.sessions.ensemble
    there, back = scene.rng.choice(((True, True), (True, False), (False, True)))
    ensemble.cut(scene.broker.host, there=there, back=back)
    _for_a_time(scene, partial(ensemble.heal, scene.broker.host))


def _lose_session(scene: Scene) -> None:
    """It is cut from ZooKeeper for longer than its session lasts, and clients are not."""
    ensemble, host = scene.world.sessions.ensemble, scene.broker.host
    ensemble.cut(host)
    seconds = scene.rng.randrange(*_LOST_SECONDS)
    scene.world.scheduler.after(seconds * SECOND, partial(ensemble.heal, host))


def _cut_from_server(scene: Scene) -> None:
    ensemble, number = scene.world.sessions.ensemble, _a_server(scene)
    ensemble.cut(scene.broker.host, number)
    _for_a_time(scene, partial(ensemble.heal, scene.broker.host, number))


def _lose_connection(scene: Scene) -> None:
    """To ZooKeeper: some of what was under way was carried out."""
    scene.world.sessions.ensemble.reset(scene.broker.host)


def _depose(scene: Scene) -> None:
    """An operator deletes the controller's node, so that another is elected."""
    scene.world.sessions.ensemble.delete(znodes.CONTROLLER)


def _elect(scene: Scene) -> None:
    """An operator asks for the preferred leaders of all partitions."""
    states = scene.world.sessions.history.states
    data = znodes.encode_partitions(states)
    scene.world.sessions.ensemble.make(znodes.PREFERRED_REPLICA_ELECTION, data)


# Disks


def _fill(scene: Scene) -> None:
    scene.broker.disk.is_full = True
    _for_a_time(scene, partial(setattr, scene.broker.disk, "is_full", False))


def _break(scene: Scene) -> None:
    """One of its directories fails for a time."""
    scene.broker.disk.broken = scene.rng.choice(scene.broker.disk.directories)
    _for_a_time(scene, partial(setattr, scene.broker.disk, "broken", None))


def _write_in_part(scene: Scene) -> None:
    scene.broker.disk.is_short = True


def _sync_slowly(scene: Scene) -> None:
    scene.broker.disk.sync_micros = scene.rng.choice((0, 100_000, 3 * SECOND))


def _read_slowly(scene: Scene) -> None:
    """No machine has anything in memory from now on."""
    for each in scene.world.staying:
        each.disk.read_micros = scene.rng.choice((100_000, 1_000_000))


# Clocks


def _jump(scene: Scene) -> None:
    scene.broker.clock.jump(scene.rng.randint(-600_000, 600_000))


def _drift(scene: Scene) -> None:
    scene.broker.clock.drift(1 + scene.rng.uniform(-0.001, 0.001))


FAULTS = {
    "calm": Fault(7, _calm),
    "start": Fault(5, _start),
    "kill": Fault(2, _kill),
    "kill at a change": Fault(3, _kill_at_a_change),
    "restart": Fault(1, _restart),
    "rolling restart": Fault(1, _roll),
    "bounce": Fault(0, _bounce),
    "power cut": Fault(2, _power_cut),
    "blackout": Fault(0, _black_out),
    "kill all": Fault(1, _kill_all),
    "pause": Fault(2, _pause),
    "leave": Fault(0, _leave),
    "cut": Fault(2, _cut),
    "reset": Fault(0, _reset),
    "part": Fault(2, _part),
    "silence": Fault(1, _silence),
    "isolate": Fault(1, _isolate),
    "slow link": Fault(1, _slow_down),
    "slow answers": Fault(0, _slow_answers),
    "expire": Fault(2, _expire),
    "stop a server": Fault(2, _stop_server),
    "isolate a server": Fault(1, _isolate_server),
    "old reads": Fault(1, _lag_server),
    "cut from ZooKeeper": Fault(2, _cut_from_zookeeper),
    "cut from a server": Fault(1, _cut_from_server),
    "lose ZooKeeper": Fault(2, _lose_connection),
    "full disk": Fault(2, _fill),
    "broken disk": Fault(1, _break),
    "short write": Fault(1, _write_in_part),
    "slow sync": Fault(1, _sync_slowly),
    "jump": Fault(1, _jump),
    "drift": Fault(1, _drift),
    "depose": Fault(1, _depose),
    "elect": Fault(0, _elect),
    "lose the session": Fault(1, _lose_session),
}
AIMED = {
    "power cut behind a cut": Fault(0, _power_cut_behind_a_cut),
    "crash": Fault(0, _crash),
    "late markers": Fault(0, _hold_markers),
    "late batches": Fault(0, _hold_batches),
    "split": Fault(0, _split),
    "slow reads": Fault(0, _read_slowly),
}
"""Those that only runs with an aim have. The draws of other runs do not depend on them."""
KINDS = {**FAULTS, **AIMED}
