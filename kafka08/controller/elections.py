"""Leader selection: four election rules, and the removal of replicas from an isr. Pure functions.

Mirrors kafka.controller.PartitionLeaderSelector. Each rule takes a vote and returns the state
to write, with ``leader_epoch`` one higher and our ``controller_epoch``. No rule returns
an empty isr (0.8.2.2 may; then the first broker to come back leads, however stale).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from kafka08.common import csv
from kafka08.controller.context import LeaderAndIsr
from kafka08.controller.states import StateChangeFailedError
from kafka08.protocol.schemas import NO_LEADER

UNCLEAN_KEY = "unclean.leader.election.enable"

# Chooses an unclean leader from the live replicas, which are in assignment order.
UncleanChoice = Callable[[tuple[int, ...]], int]


class NoReplicaOnlineError(StateChangeFailedError):
    """No replica can lead at present."""

    java_class = "kafka.common.NoReplicaOnlineException"


class LeaderElectionNotNeededError(StateChangeFailedError):
    """The partition already has the wanted leader."""

    java_class = "kafka.common.LeaderElectionNotNeededException"


class LogEndsUnknownError(StateChangeFailedError):
    """An unclean election must wait until the replicas have reported their log ends."""


class Election(NamedTuple):
    """The state to write, and the brokers that must get it by LeaderAndIsr."""

    state: LeaderAndIsr
    recipients: tuple[int, ...]
    unclean: bool = False


class Vote(NamedTuple):
    """The facts of an election: the state just read, the replicas in assignment order, the ids of
    brokers that may lead, and our epoch."""

    current: LeaderAndIsr
    assigned: Sequence[int]
    live: Collection[int]
    controller_epoch: int

    @property
    def alive(self) -> tuple[int, ...]:
        return tuple(replica for replica in self.assigned if replica in self.live)

    def won(self, leader: int, isr: tuple[int, ...], recipients: Sequence[int]) -> Election:
        state = _next(self.current, leader, isr, self.controller_epoch)
        return Election(state, tuple(recipients))


def first_leader(
    assigned: Sequence[int], live: Collection[int], controller_epoch: int
) -> LeaderAndIsr:
    """New -> Online: the first live replica leads, and all live replicas form the isr."""
    alive = tuple(replica for replica in assigned if replica in live)
    if not alive:
        raise NoReplicaOnlineError(
            f"assigned replicas are [{csv(assigned)}], live brokers are [{csv(sorted(live))}]. "
            "No assigned replica is alive."
        )
    return LeaderAndIsr(alive[0], 0, alive, controller_epoch, 0)


def offline(vote: Vote, unclean: UncleanChoice | None) -> Election:
    """The leader is gone (OfflinePartitionLeaderSelector).

    The first live member of the isr, in assignment order, leads. If there is none, ``unclean``
    chooses among the live replicas. ``unclean`` None means that the configuration forbids it.
    """
    alive = vote.alive
    alive_isr = tuple(replica for replica in vote.current.isr if replica in vote.live)
    for replica in alive:
        if replica in alive_isr:
            return vote.won(replica, alive_isr, alive)
    if unclean is None:
        raise NoReplicaOnlineError(
            f"No broker in ISR is alive. Live brokers are: [{csv(sorted(vote.live))}], "
            f"ISR brokers are: [{csv(vote.current.isr)}]"
        )
    if not alive:
        raise NoReplicaOnlineError(
            f"No replica is alive. Live brokers are: [{csv(sorted(vote.live))}], "
            f"Assigned replicas are: [{csv(vote.assigned)}]"
        )
    leader = unclean(alive)
    return vote.won(leader, (leader,), alive)._replace(unclean=True)


def longest(ends: Mapping[int, int], alive: tuple[int, ...]) -> int:
    """The unclean choice by the ends of logs: the first of the live replicas with the longest one.
    Raises LogEndsUnknownError if they are not all known."""
    if len(alive) > 1 and not ends.keys() >= set(alive):
        raise LogEndsUnknownError("The log ends of its live replicas are not known")
    return max(alive, key=lambda replica: ends.get(replica, -1))


def unclean_allowed(settings: Mapping[str, str], default: bool) -> bool:
    """Whether a topic with these own settings may have an unclean leader; ``default`` is the
    broker's. In any case of letters, as in the original."""
    text = settings.get(UNCLEAN_KEY, "").strip().lower()
    return text == "true" if text in ("true", "false") else default


def bounced(isr: Sequence[int], incarnations: Mapping[int, int], written: int) -> set[int]:
    """The members of the isr that registered after the state was written: no controller has acted
    on their bounce. ``incarnations``: of the registered brokers; ``written``: the write's zxid."""
    return {member for member in isr if incarnations.get(member, 0) > written}


def without_bounced(vote: Vote, gone: Collection[int]) -> LeaderAndIsr | None:
    """The state after the members ``gone`` of the isr bounced: they are out of it, and another one
    leads. None if it does not change, as when no other member is live."""
    others = set(vote.live).difference(gone)
    if others.isdisjoint(vote.current.isr):
        return None
    if vote.current.leader in gone:
        return offline(vote._replace(live=others), None).state
    return without_replicas(vote.current, gone, vote.controller_epoch)


def reassigned(vote: Vote) -> Election:
    """The leader is not in the new list, or dead (ReassignedPartitionLeaderSelector)."""
    for replica in vote.alive:
        if replica in vote.current.isr:
            return vote.won(replica, vote.current.isr, vote.assigned)
    raise NoReplicaOnlineError(
        "None of the reassigned replicas is alive and in-sync with the leader. "
        f"Current leader and ISR: [{vote.current}]"
    )


def preferred(vote: Vote) -> Election:
    """Give leadership to the first assigned replica (PreferredReplicaPartitionLeaderSelector)."""
    if not vote.assigned:
        raise StateChangeFailedError("No replicas are assigned")
    first, current = vote.assigned[0], vote.current
    if current.leader == first:
        raise LeaderElectionNotNeededError(
            f"Preferred replica {first} is already the current leader"
        )
    if first not in vote.live or first not in current.isr:
        raise StateChangeFailedError(
            f"Preferred replica {first} is either not alive or not in the isr. "
            f"Current leader and ISR: [{current}]"
        )
    return vote.won(first, current.isr, vote.assigned)


def controlled_shutdown(vote: Vote, shutting_down: Collection[int]) -> Election:
    """Move leadership away from brokers about to stop (ControlledShutdownLeaderSelector).

    The first member of the isr that is not shutting down leads. It must also be live: after a
    failover an isr may still contain dead followers, and 0.8.2.2 could elect one of those. Here
    the brokers ``shutting_down`` are among the live ones.
    """
    isr = tuple(replica for replica in vote.current.isr if replica not in shutting_down)
    for replica in isr:
        if replica in vote.live:
            return vote.won(replica, isr, vote.alive)
    raise NoReplicaOnlineError(
        f"No other replicas in ISR {csv(vote.current.isr)} besides shutting down brokers "
        f"{csv(sorted(shutting_down))}"
    )


def full_disks(vote: Vote, full: Collection[int]) -> Election:
    """Replicas on full disks leave the isr and become followers; another member leads.

    The state does not change if no other member of the isr is live. Producers with acks -1 need not
    wait until the leader notices that a follower with a full disk has stopped.
    """
    current = vote.current
    isr = tuple(replica for replica in current.isr if replica not in full)
    if isr == current.isr:
        raise LeaderElectionNotNeededError("No disk of the isr is full")
    for replica in (current.leader, *isr):
        if replica in isr and replica in vote.live:
            return vote.won(replica, isr, vote.alive)
    raise NoReplicaOnlineError(
        f"No other replicas in ISR {csv(current.isr)} besides those with full disks "
        f"{csv(sorted(full))}"
    )


def without_replicas(
    current: LeaderAndIsr, gone: Collection[int], controller_epoch: int
) -> LeaderAndIsr | None:
    """The state without ``gone`` in the isr; None if it does not change.

    If no member would be left, the isr stays unchanged and without a leader, so that any of its
    members can lead when it is back (KafkaController.removeReplicaFromIsr keeps only the last one,
    and only if unclean election is disabled).
    """
    isr = tuple(replica for replica in current.isr if replica not in gone) or current.isr
    leader = NO_LEADER if current.leader in gone else current.leader
    if isr == current.isr and leader == current.leader:
        return None
    return _next(current, leader, isr, controller_epoch)


def same_leader(current: LeaderAndIsr, controller_epoch: int) -> LeaderAndIsr:
    """The same leader and isr with a new leader epoch, so that brokers accept a new AR."""
    return _next(current, current.leader, current.isr, controller_epoch)


def _next(
    current: LeaderAndIsr, leader: int, isr: tuple[int, ...], controller_epoch: int
) -> LeaderAndIsr:
    return LeaderAndIsr(
        leader, current.leader_epoch + 1, isr, controller_epoch, current.zk_version + 1
    )
