"""The spread of replicas over brokers, racks and units."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import AdminOperationError
from kafka08.placement import BrokerPlace, assign_replicas


def test_the_spread_of_replicas() -> None:
    brokers = list(map(BrokerPlace, (1, 3, 5, 7)))
    assert assign_replicas(brokers, 6, 3, 1, 2) == {
        0: [3, 1, 5],
        1: [5, 3, 7],
        2: [7, 5, 1],
        3: [1, 7, 3],
        4: [3, 5, 7],
        5: [5, 7, 1],
    }
    assert assign_replicas(brokers, 3, 3, 3, 3, 6) == {
        6: [3, 5, 7],
        7: [5, 7, 1],
        8: [7, 3, 5],
    }
    assert assign_replicas([BrokerPlace(4)], 2, 1) == {0: [4], 1: [4]}


@given(st.integers(1, 8), st.integers(1, 40), st.data())
def test_the_spread_is_even_and_has_no_duplicates(n: int, partitions: int, data) -> None:  # type: ignore[no-untyped-def]
    factor = data.draw(st.integers(1, n))
    assignment = assign_replicas(list(map(BrokerPlace, range(n))), partitions, factor)
    assert list(assignment) == list(range(partitions))
    leaders = [replicas[0] for replicas in assignment.values()]
    counts = [leaders.count(broker) for broker in range(n)]
    assert max(counts) - min(counts) <= 1
    for replicas in assignment.values():
        assert len(set(replicas)) == len(replicas) == factor


@pytest.mark.parametrize(
    ("partitions", "factor", "text"),
    [
        (0, 1, "number of partitions must be larger than 0"),
        (1, 0, "replication factor must be larger than 0"),
        (1, 3, "replication factor: 3 larger than available brokers: 2"),
    ],
)
def test_impossible_spreads(partitions: int, factor: int, text: str) -> None:
    with pytest.raises(AdminOperationError, match=text):
        assign_replicas([BrokerPlace(1), BrokerPlace(2)], partitions, factor)


def test_the_spread_of_kafka_0_10_over_racks() -> None:
    """The example of AdminRackAwareTest."""
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    places = [BrokerPlace(broker_id, rack) for broker_id, rack in racks.items()]
    assert assign_replicas(places, 7, 3, 0, 0) == {
        0: [0, 3, 1],
        1: [3, 1, 5],
        2: [1, 5, 4],
        3: [5, 4, 2],
        4: [4, 2, 0],
        5: [2, 0, 3],
        6: [0, 4, 2],
    }


def test_a_unit_beside_a_broker_alone() -> None:
    places = [BrokerPlace(0, unit="u"), BrokerPlace(1, unit="u"), BrokerPlace(2)]
    assignment = assign_replicas(places, 6, 2, 0, 0)
    assert assignment == {0: [0, 2], 1: [2, 1], 2: [1, 2], 3: [0, 2], 4: [2, 1], 5: [1, 2]}
    assert assign_replicas(places, 1, 3, 0, 0) == {0: [0, 2, 1]}


def test_a_rack_does_not_hide_the_units_in_it() -> None:
    """More replicas than racks, or all brokers in one rack."""
    one = [BrokerPlace(each, "r", "uv"[each // 2]) for each in range(4)]
    for replicas in assign_replicas(one, 40, 2).values():
        assert {each // 2 for each in replicas} == {0, 1}
    two = [*one, BrokerPlace(4, "s", "w"), BrokerPlace(5, "s", "w")]
    for replicas in assign_replicas(two, 40, 3).values():
        assert {each // 2 for each in replicas} == {0, 1, 2}
    for replicas in assign_replicas(two, 40, 2).values():
        assert len({each >= 4 for each in replicas}) == 2


def test_a_unit_whose_brokers_name_several_racks_is_in_the_first() -> None:
    places = [BrokerPlace(1, "s", "u"), BrokerPlace(0, "r", "u"), BrokerPlace(2, "s", "v")]
    for replicas in assign_replicas(places, 40, 2).values():
        assert 2 in replicas


def domains(places: Sequence[BrokerPlace], replicas: Sequence[int]) -> tuple[int, int]:
    """In how many racks and units the replicas are."""
    of = {each.broker_id: each for each in places}
    units = {of[each].unit or each for each in replicas}
    racks = {of[each].rack or of[each].unit or each for each in replicas}
    return len(racks), len(units)


@given(
    st.lists(st.tuples(st.sampled_from(["", "r", "s", "t"]), st.integers(1, 3)), min_size=1,
             max_size=5),
    st.integers(1, 30), st.data(),
)  # fmt: skip
def test_as_many_racks_and_units_as_can_be(units, partitions: int, data) -> None:  # type: ignore[no-untyped-def]
    """``units``: the rack and the number of brokers of each."""
    places: list[BrokerPlace] = []
    for number, (rack, size) in enumerate(units):
        name = None if size == 1 else f"u{number}"
        places += [BrokerPlace(len(places) + each, rack or None, name) for each in range(size)]
    ids = [each.broker_id for each in places]
    factor = data.draw(st.integers(1, len(places)))
    start = data.draw(st.integers(0, 20))
    all_racks, all_units = domains(places, ids)
    assignment = assign_replicas(places, partitions, factor, start)
    assert list(assignment) == list(range(partitions))
    for replicas in assignment.values():
        assert len(set(replicas)) == factor and set(replicas) <= set(ids)
        assert domains(places, replicas) == (min(factor, all_racks), min(factor, all_units))
    leaders = [replicas[0] for replicas in assignment.values()]
    counts = [leaders.count(each) for each in ids]
    assert max(counts) - min(counts) <= 1
