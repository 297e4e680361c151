"""The clients of a run: a table of kinds, of which the seed draws some."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from tests.simulation.admin_load import Admin, TopicAdmin
from tests.simulation.clients import Seat, WireClient
from tests.simulation.commits import Committer, ZooKeeperCommitter
from tests.simulation.connector_load import ConnectorMember
from tests.simulation.consumers import WireConsumer
from tests.simulation.group_load import GroupMember
from tests.simulation.keyed_ledger import POLICIES, KeyedLedger, Policy
from tests.simulation.keyed_load import TOPIC as KEYED
from tests.simulation.keyed_load import KeyedConsumer, KeyedProducer
from tests.simulation.ledger import Ledger
from tests.simulation.list_ledger import ListLedger
from tests.simulation.list_load import ListReader, ListWriter
from tests.simulation.producers import IdempotentProducer, LeaderAcksProducer, WireProducer
from tests.simulation.relay_load import Relay
from tests.simulation.time_load import TimedConsumer
from tests.simulation.transactional import TOPIC as LISTS
from tests.simulation.world import SimulatedWorld


class Load(NamedTuple):
    """Clients of one kind. ``chance``: of being drawn, if the load that it ``needs`` is; 0 while it
    comes only in runs with an aim. Those that read stop after the others, when all has been read.
    ``legacy``: also as clients of 0.8."""

    kind: type[WireClient]
    chance: float
    reads: bool = False
    legacy: bool = True
    needs: str = ""


LOADS = {
    "producer": Load(WireProducer, 1.0),
    "consumer": Load(WireConsumer, 1.0, reads=True),
    "producer2": Load(WireProducer, 0.4),
    "consumer2": Load(WireConsumer, 0.6, reads=True),
    "consumer3": Load(WireConsumer, 0.3, reads=True),
    "timed-consumer": Load(TimedConsumer, 0.4, reads=True, legacy=False),
    "leader-acks": Load(LeaderAcksProducer, 0.5),
    "idempotent": Load(IdempotentProducer, 0.5, legacy=False),
    "idempotent2": Load(IdempotentProducer, 0.2, legacy=False),
    "committer": Load(Committer, 0.5),
    "zk-committer": Load(ZooKeeperCommitter, 0.3),
    "member": Load(GroupMember, 0.5, legacy=False),
    "member2": Load(GroupMember, 0.5, legacy=False),
    "member3": Load(GroupMember, 0.3, legacy=False),
    "zk-member": Load(ConnectorMember, 0.4),
    "zk-member2": Load(ConnectorMember, 0.4),
    "admin": Load(Admin, 0.4),
    "topic-admin": Load(TopicAdmin, 0),
    KEYED: Load(KeyedProducer, 0.4),
    "keyed2": Load(KeyedProducer, 0.3, needs=KEYED),
    "keyed-consumer": Load(KeyedConsumer, 1.0, reads=True, needs=KEYED),
    LISTS: Load(ListWriter, 0.5, legacy=False),
    "lists2": Load(ListWriter, 0.5, legacy=False, needs=LISTS),
    "relay": Load(Relay, 0.7, legacy=False, needs=LISTS),
    "relay2": Load(Relay, 0.5, legacy=False, needs="relay"),
    "list-reader": Load(ListReader, 1.0, reads=True, legacy=False, needs=LISTS),
}
"""By name, which is also that of the client's host."""
ALWAYS = ("producer", "consumer")


def drawn(world: SimulatedWorld, wanted: Collection[str] = (), *, only: bool = False) -> list[str]:
    """The names of some loads, as the seed picks them, and of those that are ``wanted``. ``only``
    these, with those of all runs."""
    rng = world.scheduler.rng
    names: list[str] = []
    for name, load in LOADS.items():
        is_drawn = (load.chance > 0 and rng.random() < load.chance) or name in wanted
        if only and name not in (*ALWAYS, *wanted):
            continue
        if is_drawn and load.needs in ("", *names) and (load.legacy or world.is_of_today):
            names.append(name)
    return names


class Clients:
    """The clients of these loads, and what they know of the messages of ``topic``."""

    def __init__(
        self,
        world: SimulatedWorld,
        topic: str,
        names: Collection[str],
        policy: Policy = POLICIES[0],
    ) -> None:
        """``policy``: of the topic with keys."""
        self.ledger = Ledger()
        self.lists = ListLedger()
        self._clients: dict[str, WireClient] = {}
        self._hosts = [each.host for each in world.brokers.values()]
        keyed = KeyedLedger(policy)
        for name in names:
            world.scheduler.note(name, "load")
            place = world.client(name), self._hosts, world.sessions, topic
            known = self.ledger, keyed, self.lists
            kind = not world.is_of_today, world.durability.is_synced
            seat = Seat(*place, *known, *kind, world.committed)
            self._clients[name] = LOADS[name].kind(seat)

    def _all(self, *, reading: bool) -> Iterator[WireClient]:
        return (each for name, each in self._clients.items() if LOADS[name].reads == reading)

    def leave_out(self, host: str) -> None:
        """Nobody asks this broker first any more."""
        self._hosts.remove(host)

    @property
    def administrators(self) -> list[WireClient]:
        return [each for each in self._clients.values() if isinstance(each, Admin)]

    def start(self) -> None:
        for client in self._clients.values():
            client.start()

    @property
    def are_under_way(self) -> bool:
        return len(self.ledger.acknowledged) > 10

    def calm_down(self) -> None:
        """Faults have ended."""
        for client in self._clients.values():
            client.is_calm = True

    def stop(self) -> None:
        """Begin to end them; asked again and again, ``have_stopped`` ends those that read."""
        for client in self._all(reading=False):
            client.stopping = True

    @property
    def have_stopped(self) -> bool:
        if all(each.has_stopped for each in self._all(reading=False)) and not self.ledger.lost:
            for client in self._all(reading=True):
                client.stopping = True
        return all(each.has_stopped for each in self._clients.values())

    def check(self) -> None:
        """The checks of all clients when they have stopped. Raises AssertionError."""
        for client in self._clients.values():
            client.check()
