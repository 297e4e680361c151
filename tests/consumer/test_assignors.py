from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.common import TopicPartition, java_string_hash
from kafka08.consumer.assignors import (
    assignor_for,
    java_order,
    range_assign,
    roundrobin_assign,
    thread_ids,
)
from kafka08.errors import KafkaError


def owners(assignment: dict[TopicPartition, str], topic: str) -> dict[str, list[int]]:
    result: dict[str, list[int]] = {}
    for tp, thread in sorted(assignment.items()):
        if tp.topic == topic:
            result.setdefault(thread, []).append(tp.partition)
    return result


def test_thread_order_is_that_of_whole_strings() -> None:
    ids = [f"g_a-{n}" for n in range(12)] + ["g_a-1-0"]
    ordered = sorted(ids, key=java_order)
    assert ordered[:5] == ["g_a-0", "g_a-1", "g_a-1-0", "g_a-10", "g_a-11"]
    hosts = ["g_Host-", "g_host-", "g_host.a-", "g_host1-", "g_hostA-", "g_host_a-"]
    shuffled = hosts[3:] + hosts[:3]
    assert sorted(shuffled, key=java_order) == hosts


def test_thread_order_follows_utf16_units() -> None:
    # U+FFFD sorts above U+1D11E in UTF-16, whose surrogates start at D834.
    assert sorted(["\ufffd", "\U0001d11e"], key=java_order) == ["\U0001d11e", "\ufffd"]


@pytest.mark.scenario("client-3")
def test_range_gives_low_threads_the_remainder() -> None:
    threads = ["g_c2-0", "g_c1-1", "g_c1-0"]
    assert owners(range_assign({"t": threads}, {"t": range(8)}), "t") == {
        "g_c1-0": [0, 1, 2],
        "g_c1-1": [3, 4, 5],
        "g_c2-0": [6, 7],
    }


def test_range_topics_are_independent() -> None:
    threads = ["g_c1-0", "g_c2-0"]
    assignment = range_assign({"t": threads, "u": threads}, {"t": [0], "u": [0]})
    assert set(assignment.values()) == {"g_c1-0"}


@pytest.mark.scenario("client-5")
def test_range_of_twelve_streams_puts_thread_10_third() -> None:
    assignment = range_assign({"t": thread_ids("g_a", 12)}, {"t": range(12)})
    assert assignment[TopicPartition("t", 2)] == "g_a-10"


def test_range_surplus_threads_and_unknown_topics_get_nothing() -> None:
    assert range_assign({"t": thread_ids("g_a", 3)}, {"t": [0]}) == {
        TopicPartition("t", 0): "g_a-0"
    }
    assert range_assign({"late": ["g_a-0"]}, {}) == {}
    assert range_assign({"t": []}, {"t": [0]}) == {}


def test_roundrobin_example() -> None:
    hashes = [java_string_hash(f"[orders,{p}]") for p in range(3)]
    assert hashes == [-1093576615, -1093576584, -1093576553]
    assert [java_string_hash(f"[clicks,{p}]") for p in range(3)] == [
        1627908499,
        1627908530,
        1627908561,
    ]
    threads = ["g_c1-0", "g_c1-1", "g_c2-0", "g_c2-1"]
    assignment = roundrobin_assign(
        {"clicks": threads, "orders": threads[::-1]}, {"clicks": range(3), "orders": range(3)}
    )
    assert list(assignment.items()) == [
        (TopicPartition("orders", 0), "g_c1-0"),
        (TopicPartition("orders", 1), "g_c1-1"),
        (TopicPartition("orders", 2), "g_c2-0"),
        (TopicPartition("clicks", 0), "g_c2-1"),
        (TopicPartition("clicks", 1), "g_c1-0"),
        (TopicPartition("clicks", 2), "g_c1-1"),
    ]


@pytest.mark.scenario("client-4")
def test_roundrobin_order_is_not_numeric() -> None:
    assert java_string_hash("[clicks,10]") == -1074444424
    assert java_string_hash("[clicks,11]") == -1074444393
    dealt = roundrobin_assign({"clicks": ["g_a-0"]}, {"clicks": range(12)})
    assert [tp.partition for tp in dealt] == [10, 11, *range(10)]


@pytest.mark.parametrize(
    "consumers", [{}, {"t": ["g_a-0"], "u": ["g_a-0", "g_a-1"]}, {"t": []}], ids=str
)
def test_roundrobin_refuses_what_it_cannot_deal(consumers: dict[str, list[str]]) -> None:
    with pytest.raises(KafkaError, match="roundrobin"):
        roundrobin_assign(consumers, {"t": [0], "u": [0]})


@given(
    st.integers(0, 40),
    st.lists(st.text(alphabet="ab-_0123456789", min_size=1, max_size=6), unique=True, min_size=1),
    st.sampled_from(["range", "roundrobin", "nonsense"]),
)
def test_every_partition_has_one_owner(count: int, threads: list[str], strategy: str) -> None:
    assignment = assignor_for(strategy)({"t": threads}, {"t": range(count)})
    assert sorted(tp.partition for tp in assignment) == list(range(count))
    loads = [list(assignment.values()).count(thread) for thread in threads]
    assert max(loads) - min(loads) <= 1
