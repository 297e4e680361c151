"""kafka08.console.failures.what_if."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.client.log_dirs import DiskUse
from kafka08.common import (
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    TopicPartition,
    offsets_partition_for,
)
from kafka08.console.cluster_state import (
    NO_LEADER,
    BrokerView,
    ClusterState,
    PartitionView,
    TopicView,
)
from kafka08.console.failures.what_if import (
    Below,
    Facts,
    LoadShare,
    LostCopy,
    MovedCoordinator,
    MovedIds,
    NewLeader,
    Orphan,
    Outcome,
    TopicDefaults,
    TouchedGroup,
    min_isr_of,
    what_if,
)
from kafka08.lag.collector import GroupLag, LogState, PartitionLag

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
CLEAN = TopicDefaults(unclean=False)


def state(
    *views: PartitionView,
    live: str = "123",
    settings: Mapping[str, str] | None = None,
    failed: Mapping[int, TopicPartition] | None = None,
    controller: int = 1,
) -> ClusterState:
    """A topic t with these partitions on the brokers 1, 2 and 3."""
    brokers = {id_: BrokerView(id_, str(id_) in live) for id_ in (1, 2, 3)}
    for id_, tp in (failed or {}).items():
        brokers[id_] = brokers[id_]._replace(failed=(tp,))
    topics = {"t": TopicView(dict(enumerate(views)))}
    own = {"t": settings or {}}
    return ClusterState(0, brokers, controller, 1, topics, {}, 0, True, own)


def view(leader: int, *isr: int, replicas: tuple[int, ...] = (1, 2, 3)) -> PartitionView:
    return PartitionView(replicas, leader, isr)


def group(*read: TopicPartition, storages: tuple[str, ...] = ("kafka",)) -> GroupLag:
    lag = PartitionLag(0, 9, 9, 1.0, False, "OK", False, 1)
    return GroupLag(storages, 1, dict.fromkeys(read, lag))


def test_the_next_leader_is_the_first_assigned_replica_that_is_in_sync() -> None:
    found = what_if(Facts(state(view(1, 3, 2, 1), view(2, 2, 3))), [1])
    assert found.elected == [NewLeader(T0, 1, 2)]
    assert found.leaderless == found.lost_with_disk == found.below_min_isr == []
    assert found.controller_moves
    # A replica that is up and not in sync is passed over.
    assert what_if(Facts(state(view(1, 3, 1))), [1]).elected == [NewLeader(T0, 1, 3)]


def test_without_unclean_elections_a_partition_waits_for_its_last_members_in_sync() -> None:
    found = what_if(Facts(state(view(1, 1)), CLEAN), [1])
    assert found.leaderless == [Orphan(T0, 1, (1,))]
    assert found.elected == []


@pytest.mark.parametrize(
    ("default", "own", "is_unclean"),
    [
        (True, {}, True),
        (True, {"unclean.leader.election.enable": "False"}, False),
        (False, {"unclean.leader.election.enable": " TRUE "}, True),
        (False, {"unclean.leader.election.enable": "maybe"}, False),
    ],
)
def test_whether_an_unclean_leader_is_allowed(
    default: bool, own: dict[str, str], is_unclean: bool
) -> None:
    facts = Facts(state(view(1, 1), settings=own), TopicDefaults(default))
    found = what_if(facts, [1])
    assert found.elected == ([NewLeader(T0, 1, 2, (2, 3), False)] if is_unclean else [])
    assert len(found.leaderless) == (not is_unclean)


@pytest.mark.parametrize(
    ("ends", "leader"),
    [({2: 5, 3: 9}, NewLeader(T0, 1, 3, (2, 3))), ({2: 9, 3: 9}, NewLeader(T0, 1, 2, (2, 3)))],
)
def test_the_unclean_leader_has_the_longest_log(ends: dict[int, int], leader: NewLeader) -> None:
    facts = Facts(state(view(1, 1), controller=2), replica_ends={T0: ends})
    assert what_if(facts, [1]).elected == [leader]


def test_the_only_replica_is_the_unclean_leader_whatever_its_log() -> None:
    assert what_if(Facts(state(view(1, 1), live="13")), [1]).elected == [NewLeader(T0, 1, 3, (3,))]


def test_an_original_controller_takes_the_first_replica() -> None:
    seen = state(view(1, 1), controller=3)
    brokers = {**seen.brokers, 3: BrokerView(3, True, is_ours=False)}
    facts = Facts(seen._replace(brokers=brokers), replica_ends={T0: {2: 5, 3: 9}})
    assert what_if(facts, [1]).elected == [NewLeader(T0, 1, 2, (2, 3))]
    # The next controller may be another one.
    gone = seen._replace(brokers=brokers, controller=1)
    assert what_if(Facts(gone), [1]).elected == [NewLeader(T0, 1, 2, (2, 3), False)]


def test_a_replica_whose_disk_has_failed_does_not_lead() -> None:
    found = what_if(Facts(state(view(1, 1, 2, 3), failed={2: T0})), [1])
    assert found.elected == [NewLeader(T0, 1, 3)]
    alone = state(view(1, 1, 2, replicas=(1, 2)), failed={2: T0})
    assert what_if(Facts(alone), [1]).leaderless == [Orphan(T0, 1, (1, 2))]


def test_a_broker_that_is_down_already_does_not_lead() -> None:
    found = what_if(Facts(state(view(1, 1, 2, 3), live="13")), [1])
    assert found.elected == [NewLeader(T0, 1, 3)]
    assert found.down == ()
    again = what_if(Facts(state(view(1, 1), live="13")), [2])
    assert (again.down, again.elected, again.leaderless) == ((2,), [], [])


def test_partitions_under_min_insync_replicas() -> None:
    own = {"min.insync.replicas": "2"}
    facts = Facts(state(view(1, 1, 2), view(2, 1, 2, 3), view(1, 1), settings=own), CLEAN)
    found = what_if(facts, [1])
    # Of partition 1 two replicas stay in sync, and partition 2 has no leader at all.
    assert found.below_min_isr == [Below(T0, (2,), 2, False)]
    assert [each.tp.partition for each in found.leaderless] == [2]
    already = Facts(state(view(1, 1, 2, 3)), TopicDefaults(True, 4))
    assert what_if(already, [3]).below_min_isr == [Below(T0, (1, 2), 4, True)]


@pytest.mark.parametrize(
    ("text", "found"), [("2", 2), (" 3 ", 3), ("", 7), ("x", 7), ("0", 7), ("-1", 7), ("9" * 99, 7)]
)
def test_a_min_isr_that_is_no_number_is_the_default(text: str, found: int) -> None:
    assert min_isr_of({"min.insync.replicas": text}, TopicDefaults(min_isr=7)) == found
    assert min_isr_of({}, TopicDefaults(min_isr=7)) == 7


def test_single_copies_are_lost_with_the_disk() -> None:
    logs = {T0: LogState(1, (1, 2, 3), (1,), 100, 350), T1: LogState(1, (1,), (1,), None, 5)}
    disks = DiskUse(replicas={T0: {1: 4096, 2: 9999}})
    views = (view(1, 1), view(1, 1, replicas=(1,)), view(1, 1, 2))
    found = what_if(Facts(state(*views), CLEAN, logs, disks=disks), [1])
    assert found.lost_with_disk == [
        LostCopy(T0, (1,), (2, 3), 250, 4096),
        LostCopy(T1, (1,), (), None, None),
    ]
    both = what_if(Facts(state(*views), CLEAN), [1, 2])
    assert [each.in_sync for each in both.lost_with_disk] == [(1,), (1,), (1, 2)]


def test_coordinators_move_with_the_partitions_of_the_offsets_topic() -> None:
    seen = state(view(1, 1, 2))
    number = offsets_partition_for("g", 2)
    views = {0: view(2, 2), 1: view(2, 2)} | {number: view(1, 1, 2)}
    topics = {**seen.topics, OFFSETS_TOPIC: TopicView(views)}
    groups = {"g": group(T0), "z": group(T0, storages=("zookeeper",))}
    found = what_if(Facts(seen._replace(topics=topics), CLEAN, groups=groups), [1])
    assert found.coordinators == [MovedCoordinator("g", 1, 2)]
    assert found.groups == [TouchedGroup("g", 1, 0), TouchedGroup("z", 1, 0)]
    topics[OFFSETS_TOPIC] = TopicView({**views, number: view(1, 1)})
    alone = what_if(Facts(seen._replace(topics=topics), CLEAN, groups=groups), [1])
    assert alone.coordinators == [MovedCoordinator("g", 1, None)]
    # Without the topic no group has a coordinator.
    assert what_if(Facts(seen, CLEAN, groups=groups), [1]).coordinators == []


def test_coordinators_of_transactional_ids_move_with_their_partitions() -> None:
    seen = state(view(1, 1, 2))
    views = {0: view(1, 1, 2), 1: view(1, 1, 2), 2: view(1, 1, 3), 3: view(1, 1), 4: view(2, 2)}
    topics = {**seen.topics, TRANSACTIONS_TOPIC: TopicView(views)}
    facts = Facts(seen._replace(topics=topics), CLEAN)

    def moved(ids: dict[int, int]) -> list[MovedIds]:
        return list(what_if(facts._replace(transactional_ids=ids), [1]).transactional_ids)

    known = {0: 3, 1: 4, 2: 0, 3: 1, 4: 9}
    assert moved(known) == [MovedIds(1, 2, 2, 7), MovedIds(1, None, 1, 1)]
    assert moved({0: 3, 2: 0, 3: 0}) == [MovedIds(1, 2, 2, None)]
    assert what_if(Facts(seen, CLEAN), [1]).transactional_ids == []


def test_a_group_whose_partition_stops() -> None:
    facts = Facts(state(view(1, 1), view(1, 1, 2)), CLEAN, groups={"g": group(T0, T1)})
    assert what_if(facts, [1]).groups == [TouchedGroup("g", 1, 1)]
    assert what_if(facts, [3]).groups == []


def test_leaders_and_traffic_of_those_that_remain() -> None:
    facts = Facts(state(view(1, 1, 2), view(2, 2, 3)), rates={T0: 10.0, T1: 2.5})
    assert what_if(facts, [1]).spread == [LoadShare(2, 1, 2, 2.5, 12.5), LoadShare(3, 0, 0, 0, 0)]
    unknown = what_if(facts._replace(rates={}), [1])
    assert unknown.spread[0] == LoadShare(2, 1, 2, None, None)


def test_all_brokers() -> None:
    found = what_if(Facts(state(view(1, 1, 2), view(-1))), [1, 2, 3])
    assert found.leaderless == [Orphan(T0, 1, (1, 2))]
    assert found.spread == []


@st.composite
def clusters(draw: st.DrawFn) -> Facts:
    """Consistent ones: members of an isr are assigned and up, and the leader is one of them."""
    ids = list(range(1, draw(st.integers(1, 6)) + 1))
    live = set(draw(st.lists(st.sampled_from(ids), unique=True)))
    views = {}
    for number in range(draw(st.integers(0, 8))):
        replicas = tuple(draw(st.lists(st.sampled_from(ids), unique=True, min_size=1)))
        able = [id_ for id_ in replicas if id_ in live]
        isr = tuple(draw(st.lists(st.sampled_from(able), unique=True))) if able else ()
        views[number] = PartitionView(replicas, draw(st.sampled_from(isr)) if isr else -1, isr)
    brokers = {id_: BrokerView(id_, id_ in live) for id_ in ids}
    own = draw(st.sampled_from([{}, {"min.insync.replicas": "2"}]))
    rates = {TopicPartition("t", n): float(draw(st.integers(0, 100))) for n in views}
    topics = {"t": TopicView(views)}
    seen = ClusterState(0, brokers, ids[0], 1, topics, {}, 0, True, {"t": own})
    return Facts(seen, TopicDefaults(draw(st.booleans()), 1), rates=rates)


@given(clusters(), st.data())
def test_leaders_are_live_and_none_is_lost_from_the_sums(facts: Facts, data: st.DataObject) -> None:
    dead = data.draw(st.sets(st.sampled_from(sorted(facts.state.brokers))))
    found = what_if(facts, dead)
    views = dict(facts.state.partitions())
    live = {each.id for each in facts.state.live} - dead
    for each in found.elected:
        assert each.leader in live & set(views[each.tp].replicas)
        assert each.before in dead
        # Only where nobody in sync remains is the election unclean.
        assert bool(each.candidates) == live.isdisjoint(views[each.tp].isr)
        assert each.candidates or each.leader in views[each.tp].isr
    for orphan in found.leaderless:
        assert live.isdisjoint(views[orphan.tp].isr)
        assert not facts.defaults.unclean or live.isdisjoint(views[orphan.tp].replicas)
    led = [tp for tp, each in views.items() if each.leader != NO_LEADER]
    assert sum(each.leads_after for each in found.spread) + len(found.leaderless) == len(led)
    orphaned = sum(facts.rates[each.tp] for each in found.leaderless)
    after = sum(each.rate_after or 0 for each in found.spread)
    assert after + orphaned == pytest.approx(sum(facts.rates[tp] for tp in led))


@given(clusters())
def test_nothing_follows_if_nobody_dies(facts: Facts) -> None:
    found = what_if(facts, ())
    assert not any((found.elected, found.leaderless, found.below_min_isr, found.lost_with_disk))
    assert all(each.leads_before == each.leads_after for each in found.spread)


@given(clusters(), st.data())
def test_more_deaths_never_help(facts: Facts, data: st.DataObject) -> None:
    some = data.draw(st.sets(st.sampled_from(sorted(facts.state.brokers))))
    more = some | data.draw(st.sets(st.sampled_from(sorted(facts.state.brokers))))
    few, many = what_if(facts, some), what_if(facts, more)

    def refused(found: Outcome) -> set[TopicPartition]:
        return {each.tp for each in (*found.leaderless, *found.below_min_isr)}

    assert {e.tp for e in few.leaderless} <= {e.tp for e in many.leaderless}
    assert {e.tp for e in few.lost_with_disk} <= {e.tp for e in many.lost_with_disk}
    assert refused(few) <= refused(many)
