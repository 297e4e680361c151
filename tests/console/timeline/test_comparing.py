"""kafka08.console.timeline.comparing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.common import TopicPartition
from kafka08.console.cluster_state import BrokerView, ClusterState, PartitionView, TopicView
from kafka08.console.timeline import comparing
from kafka08.console.timeline.happenings import Happening
from kafka08.lag.collector import GroupLag, Lags, PartitionLag

TP = TopicPartition("t", 0)
TIMES = (1, 2)


def state(
    *,
    brokers: Mapping[int, BrokerView] | None = None,
    controller: int | None = 1,
    epoch: int | None = 3,
    topics: Mapping[str, TopicView] | None = None,
    moves: Mapping[TopicPartition, tuple[int, ...]] | None = None,
    settings: Mapping[str, Mapping[str, str]] | None = None,
) -> ClusterState:
    return ClusterState(
        0, brokers or {}, controller, epoch, topics or {}, moves or {}, 0, True, settings or {}
    )


def topic(count: int = 1, *, replicas: tuple[int, ...] = (1,), marked: bool = False) -> TopicView:
    return TopicView({n: PartitionView(replicas, 1, replicas) for n in range(count)}, marked)


def texts(found: list[Happening], kind: str) -> list[str]:
    assert {each.kind for each in found} <= {kind}
    return [each.text for each in found]


UP, DOWN = BrokerView(2, True, ("b2:9092",), 5), BrokerView(2, False, ("b2:9092",), 9)


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ({2: UP}, {2: DOWN}, "Broker 2 (b2:9092) went down"),
        ({2: UP}, {}, "Broker 2 (b2:9092) went down"),
        ({2: DOWN}, {2: UP}, "Broker 2 (b2:9092) came back"),
        ({}, {2: BrokerView(2, True)}, "Broker 2 joined"),
        (
            {2: UP},
            {2: UP._replace(since_ms=8)},
            "Broker 2 (b2:9092) was gone for a moment: it registered again",
        ),
        ({2: UP}, {2: UP._replace(since_ms=None)}, None),
        ({2: DOWN}, {}, None),
        ({}, {2: DOWN}, None),
    ],
)
def test_brokers(
    before: dict[int, BrokerView], after: dict[int, BrokerView], text: str | None
) -> None:
    found = comparing.between(state(brokers=before), state(brokers=after))
    assert texts(found, "broker") == ([text] if text else [])
    assert all(each.names == ("broker 2",) for each in found)


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ((1, 3), (2, 4), "The controller moved from 1 to 2, epoch 4"),
        ((1, 3), (1, 4), "Broker 1 was elected controller again, epoch 4"),
        ((1, 3), (None, 3), "There is no controller any more: it was 1"),
        ((None, 3), (2, 4), "Broker 2 became the controller, epoch 4"),
        ((1, 3), (2, None), "The controller moved from 1 to 2"),
        ((None, 3), (None, 4), None),
        ((1, 3), (1, 3), None),
    ],
)
def test_the_controller(
    before: tuple[int | None, int | None], after: tuple[int | None, int | None], text: str | None
) -> None:
    was = state(controller=before[0], epoch=before[1])
    now = state(controller=after[0], epoch=after[1])
    assert texts(comparing.between(was, now), "controller") == ([text] if text else [])


def test_moves_begin_and_end() -> None:
    others = {TopicPartition("t", n): (2,) for n in (1, 2)}
    idle = state(topics={"t": topic(3)})
    moving = idle._replace(moves={TP: (2,), **others})
    [begun] = comparing.between(idle, moving)
    assert (begun.text, begun.names) == ("A move began of 3 partitions of t", ("t",))
    # One has its new replicas.
    partitions = {**idle.topics["t"].partitions, 0: PartitionView((2,), 2, (2,))}
    ended = idle._replace(topics={"t": TopicView(partitions)})
    assert texts(comparing.between(moving, ended), "move") == [
        "A move ended of partition t-0",
        "A move was given up of 2 partitions of t: the replicas are not those asked for",
    ]


def test_topics_come_grow_and_go() -> None:
    before = state(topics={"a": topic(), "b": topic(), "c": topic(1)})
    after = state(topics={"b": topic(marked=True), "c": topic(4), "d": topic(), "e": topic()})
    assert texts(comparing.between(before, after), "topic") == [
        "2 topics (d, e) were created",
        "Topic b was marked for deletion",
        "Topic a was deleted",
        "Topic c has 4 partitions, and had 1",
    ]
    grown = {str(n): topic(2) for n in range(6)}
    small = {str(n): topic(1) for n in range(6)}
    [only] = comparing.between(state(topics=small), state(topics=grown))
    assert only.text == "6 topics (0, 1, 2 and 3 more) got more partitions"
    # A node that could not be read for a while has not grown.
    unread = {"a": TopicView({})}
    assert comparing.between(state(topics=unread), state(topics={"a": topic()})) == []


def test_settings() -> None:
    was = state(settings={"t": {"a": "1", "b": "2", "same": "x"}, "gone": {"a": "1"}})
    now = state(settings={"t": {"a": "9", "c": "3", "same": "x"}, "new": {"a": "1"}})
    assert texts(comparing.between(was, now), "setting") == [
        "Settings of t: a is 9, and was 1; b is the default again, and was 2; c is 3"
    ]
    many = {str(n): {"a": "1"} for n in range(6)}
    [only] = comparing.between(state(settings={n: {} for n in many}), state(settings=many))
    assert only.text == "6 topics (0, 1, 2 and 3 more) have other settings"
    assert len(only.names) == 6


def views(*rows: tuple[int, tuple[int, ...]]) -> dict[TopicPartition, PartitionView]:
    """Leader and isr of each partition of t."""
    return {
        TopicPartition("t", n): PartitionView((1, 2, 3), leader, isr)
        for n, (leader, isr) in enumerate(rows)
    }


def test_many_leaders_are_one_event() -> None:
    isr = (1, 2, 3)
    before = views(*[(2, isr)] * 12)
    after = views(*[(1, isr)] * 5, *[(3, isr)] * 7)
    [only] = comparing.leaders(TIMES, before, after)
    assert only == Happening(2, 1, "leader", "12 leaders moved from 2 to 1, 3: of t", ("t",))


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (2, 1, "The leader of partition t-0 moved from 2 to 1"),
        (2, -1, "No leader any more for partition t-0: it was 2"),
        (-1, 3, "A leader again for partition t-0: 3"),
    ],
)
def test_one_leader(before: int, after: int, text: str) -> None:
    found = comparing.leaders(TIMES, views((before, (1,))), views((after, (1,))))
    assert texts(found, "leader") == [text]


def test_replicas_in_sync_by_broker() -> None:
    full, part = (1, (1, 2, 3)), (1, (1, 3))
    found = comparing.leaders(TIMES, views(full, full, part), views(part, part, full))
    assert texts(found, "replica") == [
        "Broker 2 fell out of sync in 2 partitions of t",
        "Broker 2 is in sync again in partition t-2",
    ]


def test_a_replica_that_was_moved_away_has_not_fallen_behind() -> None:
    before = {TP: PartitionView((1, 2), 1, (1, 2))}
    assert comparing.leaders(TIMES, before, {TP: PartitionView((1,), 1, (1,))}) == []


def test_a_partition_without_a_leader_keeps_its_members_in_sync() -> None:
    before = views((1, (1, 2)))
    dead = state(topics={"t": TopicView({0: PartitionView((1, 2), -1, ())})})
    between = comparing.known_views(before, dead)
    assert between == {TP: PartitionView((1, 2), -1, (1, 2))}
    assert len(comparing.leaders(TIMES, before, between)) == 1
    found = [each.text for each in comparing.leaders(TIMES, between, views((2, (2,))))]
    assert found == [
        "A leader again for partition t-0: 2",
        "Broker 1 fell out of sync in partition t-0",
    ]
    # One that never had any says nothing.
    unknown = comparing.known_views({}, dead)
    assert [each.kind for each in comparing.leaders(TIMES, unknown, before)] == ["leader"]


def lags(**groups: tuple[str, int]) -> Lags:
    """Status and offset of each group in t-0."""
    found = {
        name: GroupLag(
            ("kafka",),
            1,
            {TP: PartitionLag(offset, 1234, 1234 - offset, 1.0, False, status, False, 1)},
        )
        for name, (status, offset) in groups.items()
    }
    return Lags(5, (), {}, found, True)


def test_groups_whose_judgement_changes() -> None:
    before = lags(a=("OK", 234), b=("WARN", 0), gone=("OK", 0))
    after = lags(a=("STOP", 234), b=("WARN", 0), new=("STOP", 0))
    assert texts(comparing.groups(before, after), "group") == [
        "Group a is STOP, and was OK: lag 1,000"
    ]
    many = [str(n) for n in range(7)]
    good, bad = lags(**dict.fromkeys(many, ("OK", 1))), lags(**dict.fromkeys(many, ("STALL", 1)))
    assert texts(comparing.groups(good, bad), "group") == [
        "7 groups (0, 1, 2 and 4 more) are STALL"
    ]


def test_groups_that_go_back() -> None:
    found = comparing.groups(lags(a=("OK", 9), b=("OK", 9)), lags(a=("OK", 8), b=("OK", 10)))
    assert texts(found, "offsets") == ["Group a went back in partition t-0"]


@st.composite
def looks(draw: st.DrawFn) -> dict[TopicPartition, PartitionView]:
    rows = draw(
        st.lists(st.tuples(st.integers(-1, 3), st.sets(st.integers(1, 3)).map(tuple)), max_size=9)
    )
    return views(*rows)


@given(looks(), looks())
def test_a_look_adds_few_events_and_the_same_look_none(
    before: dict[TopicPartition, PartitionView], after: dict[TopicPartition, PartitionView]
) -> None:
    assert comparing.leaders(TIMES, before, before) == []
    found = comparing.leaders(TIMES, before, after)
    changed = [tp for tp in before.keys() & after.keys() if before[tp] != after[tp]]
    assert len(found) <= 2 * 5 + 2 * 3
    assert found == [] or changed
    moved = [tp for tp in changed if before[tp].leader != after[tp].leader]
    assert any(each.kind == "leader" for each in found) == bool(moved)
