"""The checker finds each kind of violation, and takes what is allowed for sound."""

from __future__ import annotations

import pytest

from integration.faults import plan, values
from integration.faults.checker import check
from integration.faults.history import Event
from integration.faults.replicas import difference
from integration.faults.stalls import longest
from integration.faults.values import Value
from kafka08.message.sets import encode_set


def send(first: int, count: int = 1, what: str = "send", **more: int) -> Event:
    return {"e": what, "t": 1.0, "p": 0, "w": 1, "s": first, "n": count, **more}


def ack(first: int, offset: int, count: int = 1) -> Event:
    return send(first, count, "ack", o=offset)


def records(what: str, offset: int, *sequences: int | None) -> Event:
    pairs = [None if sequence is None else [1, sequence] for sequence in sequences]
    return {"e": what, "t": 2.0, "p": 0, "o": offset, "v": pairs}


TWO_SETS = [send(0, 2), ack(0, 0, 2), send(2), ack(2, 2)]


def test_all_acknowledged_and_read_is_sound() -> None:
    verdict = check([*TWO_SETS, records("read", 0, 0, 1, 2), records("final", 0, 0, 1, 2)])
    assert verdict.sound
    assert (verdict.acknowledged, verdict.stored, verdict.duplicated) == (3, 3, 0)


def test_a_try_of_unknown_outcome_may_be_stored_once_more_even_late() -> None:
    events = [send(0, 2), send(0, 2, "unknown"), send(0, 2), ack(0, 0, 2), send(2), ack(2, 2)]
    assert check([*events, records("final", 0, 0, 1, 2)]).sound
    verdict = check([*events, records("final", 0, 0, 1, 2, 0, 1)])
    assert verdict.sound
    assert verdict.duplicated == 2


def test_a_set_twice_before_its_acknowledgement_is_in_order() -> None:
    events = [send(0, 2), send(0, 2, "unknown"), send(0, 2), ack(0, 2, 2)]
    assert check([*events, records("final", 0, 0, 1, 0, 1)]).sound


def test_an_acknowledgement_without_an_offset_counts() -> None:
    events = [send(0), send(0, 1, "stored")]
    found = check([*events, records("final", 0, 0)])
    assert found.sound and found.acknowledged == 1
    assert check(events).counts == {"lost": 1}


def test_a_record_that_was_sent_once_is_stored_once() -> None:
    """The history has one try of each record that an idempotent producer sends."""
    assert check([*TWO_SETS, records("final", 0, 0, 1, 2, 2)]).counts == {"foreign": 1}


def test_unacknowledged_records_may_be_missing() -> None:
    assert check([*TWO_SETS, send(3), records("final", 0, 0, 1, 2)]).sound


@pytest.mark.parametrize(
    ("kind", "events"),
    [
        ("lost", [*TWO_SETS, records("final", 0, 0, 1)]),
        ("changed", [*TWO_SETS, send(3), records("final", 0, 0, 1, 3, 2)]),
        ("changed", [send(0), send(1), records("read", 0, 0), records("final", 0, 1)]),
        ("changed", [send(0), send(1), records("read", 0, 0), records("read", 0, 1)]),
        ("changed", [send(0), records("read", 0, 0), records("final", 0)]),
        ("foreign", [records("final", 0, None)]),
        ("foreign", [send(0), ack(0, 0), records("final", 0, 0, 0)]),
        ("foreign", [send(0), send(0, 1, "refused"), records("final", 0, 0)]),
        (
            "reordered",
            [send(0), send(0, 1, "unknown"), send(0), ack(0, 1), send(1), send(1),
             records("final", 0, 1, 0, 1)],
        ),
    ],
)  # fmt: skip
def test_violations_are_found(kind: str, events: list[Event]) -> None:
    verdict = check(events)
    assert not verdict.sound
    assert verdict.counts[kind] > 0
    assert any(line.startswith(kind) for line in verdict.lines)


def test_values_say_where_they_belong() -> None:
    data = values.encode(3, Value(1, 17))
    assert values.decode(3, data) == Value(1, 17)
    assert values.decode(2, data) is None
    assert values.decode(3, data + b"x") is None
    assert values.decode(3, None) is None
    assert values.decode(3, b"3/1/") is None


def test_a_seed_gives_its_faults_again() -> None:
    def first(count: int, seed: int, possible: bool = True) -> list[plan.Fault]:
        drawn = plan.draw(seed, 5, 4, cuts=possible, disks=possible)
        return [next(drawn) for _ in range(count)]

    assert first(300, 1) == first(300, 1)
    assert first(20, 1) != first(20, 2)
    special = {*plan.CUTS, "full-disk"}
    assert not {fault.kind for fault in first(300, 1, possible=False)} & special
    assert {fault.kind for fault in first(300, 1)} >= special


def test_outages_of_zookeeper_outlast_sessions() -> None:
    drawn = plan.draw(1, 5, 4, cuts=False, disks=False)
    faults = [next(drawn) for _ in range(300)]
    for kind in ("zookeeper-away", "zookeeper-freeze"):
        assert min(each.duration_s for each in faults if each.kind == kind) > plan.SESSION_S


def test_replicas_are_compared_up_to_the_shortest() -> None:
    whole = encode_set([(None, b"a"), (None, b"b"), (None, b"c")])
    other = encode_set([(None, b"a"), (None, b"x"), (None, b"c")])
    part = encode_set([(None, b"a"), (None, b"b")])
    assert difference({1: whole, 2: whole, 3: part}) == ""
    assert difference({}) == ""
    assert difference({1: whole, 2: other}) == "brokers 1 and 2 part at 1, 1"


def test_the_longest_stalls_are_found() -> None:
    def ack(at: float, partition: int) -> Event:
        return {"e": "ack", "t": at, "p": partition, "w": 1, "s": 0, "n": 1, "o": 0}

    def fault(at: float, what: str) -> Event:
        return {"e": "fault", "t": at, "what": what, "brokers": [], "number": 1}

    events = [
        *(ack(10, 0), ack(11, 1), fault(11.2, "full-disk 1"), ack(14.5, 0), fault(15, "kill 2")),
        *(ack(17, 0), ack(19, 1)),
    ]
    found = longest(events)
    assert found.topic == (3.5, 11.0, "full-disk 1")
    assert found.partition == (8.0, 11.0, "full-disk 1")
    assert longest([]).topic.seconds == 0
