"""The consequences if some brokers died now, by the rules of the controller. Pure.

The brokers that remain, their disks and the settings are those of the console's last look. The
next leader comes from ``kafka08.controller.elections``, as in a controller of this project.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from kafka08.client.log_dirs import DiskUse
from kafka08.common import (
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    TopicPartition,
    offsets_partition_for,
)
from kafka08.console.cluster_state import NO_LEADER, ClusterState, PartitionView
from kafka08.controller import elections
from kafka08.controller.context import LeaderAndIsr
from kafka08.controller.elections import NoReplicaOnlineError, Vote
from kafka08.lag.collector import KAFKA, GroupLag, LogState

MIN_ISR_KEY = "min.insync.replicas"


class TopicDefaults(NamedTuple):
    """The settings of topics without own ones. ``broker``: who said it; None if these are the
    built-in values, as no broker says it."""

    unclean: bool = True
    min_isr: int = 1
    broker: int | None = None


class Facts(NamedTuple):
    """``rates``: messages per second by partition. ``groups`` by name. ``transactional_ids``: how
    many each partition of ``__transaction_state`` keeps. ``replica_ends``: of the logs of
    partitions, by broker. The mappings leave out the unknown."""

    state: ClusterState
    defaults: TopicDefaults = TopicDefaults()
    logs: Mapping[TopicPartition, LogState] = {}
    groups: Mapping[str, GroupLag] = {}
    rates: Mapping[TopicPartition, float] = {}
    disks: DiskUse = DiskUse()
    transactional_ids: Mapping[int, int] = {}
    replica_ends: Mapping[TopicPartition, Mapping[int, int]] = {}


class NewLeader(NamedTuple):
    """``candidates``: if the election is unclean, the replicas of which one is chosen.
    ``is_known`` False: the one with the longest log leads, and ``leader`` is the first of them."""

    tp: TopicPartition
    before: int
    leader: int
    candidates: tuple[int, ...] = ()
    is_known: bool = True


class Orphan(NamedTuple):
    """A partition that would have no leader. ``waits_for``: its last members in sync, of which one
    must come back."""

    tp: TopicPartition
    before: int
    waits_for: tuple[int, ...]


class Below(NamedTuple):
    """A partition with a leader and too few replicas in sync: producers with acks=all are refused.
    ``was_below``: they are refused already."""

    tp: TopicPartition
    in_sync: tuple[int, ...]
    min_isr: int
    was_below: bool


class LostCopy(NamedTuple):
    """A partition of which only the dead brokers have all messages. ``others``: live replicas,
    which have an older part of them. ``messages`` and ``bytes`` None: not known."""

    tp: TopicPartition
    in_sync: tuple[int, ...]
    others: tuple[int, ...]
    messages: int | None
    bytes: int | None


class MovedCoordinator(NamedTuple):
    """``after`` None: the group would have no coordinator."""

    group: str
    before: int
    after: int | None


class MovedIds(NamedTuple):
    """Transactional ids that lose their coordinator ``before``; ``after`` None: they would have
    none. ``ids`` None: not known of all the ``partitions`` of ``__transaction_state``."""

    before: int
    after: int | None
    partitions: int
    ids: int | None


class TouchedGroup(NamedTuple):
    """A group that reads from partitions the brokers lead: ``moved`` of them get another leader,
    and ``stopped`` have none."""

    group: str
    moved: int
    stopped: int


class LoadShare(NamedTuple):
    """A broker that remains. Messages per second are those of the partitions that it leads; None
    if they are not known."""

    broker: int
    leads_before: int
    leads_after: int
    rate_before: float | None
    rate_after: float | None


class Outcome(NamedTuple):
    """``brokers``: those that die. ``down``: those of them that are down already."""

    brokers: tuple[int, ...]
    down: tuple[int, ...]
    controller_moves: bool
    elected: Sequence[NewLeader]
    leaderless: Sequence[Orphan]
    below_min_isr: Sequence[Below]
    lost_with_disk: Sequence[LostCopy]
    coordinators: Sequence[MovedCoordinator]
    transactional_ids: Sequence[MovedIds]
    groups: Sequence[TouchedGroup]
    spread: Sequence[LoadShare]


def what_if(facts: Facts, brokers: Collection[int]) -> Outcome:
    """All in the order of partitions and names. Partitions without a leader now are not among
    ``leaderless``: nothing changes for them."""
    dead, state = set(brokers), facts.state
    live = {each.id for each in state.live}
    views = dict(sorted(state.partitions()))
    after = {tp: _after(facts, tp, view, live - dead, dead) for tp, view in views.items()}
    orphans = {
        tp: Orphan(tp, view.leader, view.isr)
        for tp, view in views.items()
        if after[tp].state.leader == NO_LEADER and not view.is_offline
    }
    elected = [
        NewLeader(tp, view.leader, fate.state.leader, fate.candidates, fate.is_known)
        for tp, view in views.items()
        if (fate := after[tp]).state.leader not in (view.leader, NO_LEADER)
    ]
    moved = {each.tp for each in elected}
    return Outcome(
        tuple(sorted(dead)),
        tuple(sorted(dead - live)),
        state.controller in dead & live,
        elected,
        list(orphans.values()),
        [low for tp, view in views.items() if (low := _below(facts, tp, view, after[tp]))],
        [lost for tp, view in views.items() if (lost := _lost(facts, tp, view, live, dead))],
        _coordinators(facts.groups, views, after, dead),
        _moved_ids(facts.transactional_ids, views, after, dead),
        _touched(facts.groups, moved, orphans.keys()),
        [_share(facts.rates, views, after, id_) for id_ in sorted(live - dead)],
    )


class _Fate(NamedTuple):
    """A partition after the controller has acted. ``candidates`` and ``is_known`` as those of
    NewLeader."""

    state: LeaderAndIsr
    candidates: tuple[int, ...] = ()
    is_known: bool = True


def _after(
    facts: Facts, tp: TopicPartition, view: PartitionView, live: set[int], dead: set[int]
) -> _Fate:
    """``live``: the brokers that remain."""
    state = LeaderAndIsr(view.leader, 0, view.isr, 0, 0)
    if view.is_offline or dead.isdisjoint({view.leader, *view.isr}):
        return _Fate(state)
    gone = {view.leader, *view.isr} - live
    if view.leader in live:
        return _Fate(elections.without_replicas(state, gone, 0) or state)
    able = {id_ for id_ in live if tp not in facts.state.brokers[id_].failed}
    vote = Vote(state, view.replicas, able, 0)
    own = facts.state.settings.get(tp.topic, {})
    is_allowed = elections.unclean_allowed(own, facts.defaults.unclean)
    ends = facts.replica_ends.get(tp, {})
    # Controllers of 0.8.2.2 look at no logs.
    takes_longest = bool(ends) and not _is_original(facts.state, live)
    choice = partial(elections.longest, ends) if takes_longest else itemgetter(0)
    try:
        won = elections.offline(vote, choice if is_allowed else None)
    except NoReplicaOnlineError:
        return _Fate(elections.without_replicas(state, gone, 0) or state)
    if not won.unclean:
        return _Fate(won.state)
    is_known = takes_longest or len(vote.alive) == 1 or _is_original(facts.state, live)
    return _Fate(won.state, vote.alive, is_known)


def _is_original(state: ClusterState, live: set[int]) -> bool:
    """Whether the controller stays, and is of 0.8.2.2."""
    controller = state.controller
    return controller in live and state.brokers[controller].is_ours is False


def min_isr_of(settings: Mapping[str, str], defaults: TopicDefaults) -> int:
    """The topic's own one, if it is a number from 1 on; otherwise the default."""
    text = settings.get(MIN_ISR_KEY, "").strip()
    own = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    return own or defaults.min_isr


def _below(facts: Facts, tp: TopicPartition, view: PartitionView, fate: _Fate) -> Below | None:
    """Of partitions that lose a replica in sync, or their leader."""
    least = min_isr_of(facts.state.settings.get(tp.topic, {}), facts.defaults)
    isr = fate.state.isr
    if fate.state.leader == NO_LEADER or isr == view.isr or len(isr) >= least:
        return None
    return Below(tp, isr, least, len(view.isr) < least)


def _lost(
    facts: Facts, tp: TopicPartition, view: PartitionView, live: set[int], dead: set[int]
) -> LostCopy | None:
    """Those down already do not count as copies: it is not known whether their disks are good."""
    copies = {replica for replica in view.isr if replica in live or replica in dead}
    if not copies or not copies <= dead:
        return None
    log = facts.logs.get(tp)
    is_known = log is not None and log.start is not None and log.end is not None
    sizes = [size for broker, size in facts.disks.replicas.get(tp, {}).items() if broker in copies]
    return LostCopy(
        tp,
        tuple(replica for replica in view.isr if replica in dead),
        tuple(replica for replica in view.replicas if replica in live - dead),
        (log.end or 0) - (log.start or 0) if log and is_known else None,
        max(sizes, default=None),
    )


def _coordinators(
    groups: Mapping[str, GroupLag],
    views: Mapping[TopicPartition, PartitionView],
    after: Mapping[TopicPartition, _Fate],
    dead: set[int],
) -> list[MovedCoordinator]:
    """Of groups that commit to brokers: the leader of a partition of the offsets topic keeps one.
    Its members join again at the next."""
    count = sum(tp.topic == OFFSETS_TOPIC for tp in views)
    moves = _moved_partitions(OFFSETS_TOPIC, views, after, dead)
    found = []
    for group in sorted(name for name, lag in groups.items() if KAFKA in lag.storages and moves):
        move = moves.get(offsets_partition_for(group, count))
        if move is not None:
            found.append(MovedCoordinator(group, *move))
    return found


def _moved_ids(
    ids: Mapping[int, int],
    views: Mapping[TopicPartition, PartitionView],
    after: Mapping[TopicPartition, _Fate],
    dead: set[int],
) -> list[MovedIds]:
    """Partitions without an id are left out."""
    moved: dict[tuple[int, int | None], list[int | None]] = defaultdict(list)
    for number, move in _moved_partitions(TRANSACTIONS_TOPIC, views, after, dead).items():
        if ids.get(number) != 0:
            moved[move].append(ids.get(number))
    return [
        MovedIds(*move, len(found), None if None in found else sum(filter(None, found)))
        for move, found in moved.items()
    ]


def _moved_partitions(
    topic: str,
    views: Mapping[TopicPartition, PartitionView],
    after: Mapping[TopicPartition, _Fate],
    dead: set[int],
) -> dict[int, tuple[int, int | None]]:
    """Of a topic whose leaders coordinate: those that the dead lead, each with its leader now and
    the next one, None if it has none."""
    found: dict[int, tuple[int, int | None]] = {}
    for tp, view in views.items():
        if tp.topic == topic and view.leader in dead:
            leader = after[tp].state.leader
            if leader != view.leader:
                found[tp.partition] = view.leader, None if leader == NO_LEADER else leader
    return found


def _touched(
    groups: Mapping[str, GroupLag],
    moved: Collection[TopicPartition],
    stopped: Collection[TopicPartition],
) -> list[TouchedGroup]:
    found = []
    for name, lag in sorted(groups.items()):
        read = {*lag.partitions, *lag.uncommitted}
        row = TouchedGroup(name, len(read & set(moved)), len(read & set(stopped)))
        if row.moved or row.stopped:
            found.append(row)
    return found


def _share(
    rates: Mapping[TopicPartition, float],
    views: Mapping[TopicPartition, PartitionView],
    after: Mapping[TopicPartition, _Fate],
    broker: int,
) -> LoadShare:
    before = [tp for tp, view in views.items() if view.leader == broker]
    then = [tp for tp, fate in after.items() if fate.state.leader == broker]
    return LoadShare(
        broker,
        len(before),
        len(then),
        sum(rates.get(tp, 0.0) for tp in before) if rates else None,
        sum(rates.get(tp, 0.0) for tp in then) if rates else None,
    )
