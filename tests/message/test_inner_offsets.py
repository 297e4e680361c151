"""Which inner offsets are trusted: those of 0.8.2.2 and of cleaned wrappers, never a producer's."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.log.log import Log
from kafka08.message.entry import encode_entry
from kafka08.message.sets import assign_offsets, iter_messages
from kafka08.message.wrappers import leaves, looks_true_with_gaps, numbered_from
from tests.fakes.runtime import FakeClock
from tests.log.support import config
from tests.message.sets import CODECS, LIMIT, has_absolute_offsets, rebuild, wrapper

gaps = st.lists(st.integers(1, 4) | st.just(1), min_size=1, max_size=60)


def at(offsets: list[int], size: int = 3) -> bytes:
    """Plain messages of one size, or of two sizes in turn if ``size`` is negative."""
    sizes = (abs(size), abs(size) if size > 0 else 1 - size)
    return b"".join(
        [encode_entry(None, b"v" * sizes[i % 2], offset) for i, offset in enumerate(offsets)]
    )


def true_offsets(entry: bytes) -> list[int]:
    return [message.offset for message in iter_messages(entry)]


def is_trusted(offsets: list[int], last: int) -> bool:
    return offsets[-1] == last and sorted(set(offsets)) == offsets


@given(
    start=st.integers(0, 2**40),
    steps=gaps,
    size=st.sampled_from([3, -3]),
    codec=st.sampled_from(CODECS),
    key=st.none() | st.just(b"k"),
)
@settings(deadline=None)
def test_rising_offsets_that_end_at_the_wrappers_are_true(start, steps, size, codec, key):
    offsets = [start + sum(steps[:i]) for i in range(len(steps))]
    entry = wrapper(at(offsets, size), codec, offsets[-1], key)
    assert true_offsets(entry) == offsets
    assert has_absolute_offsets(entry)
    assert true_offsets(rebuild(entry)) == offsets
    # nested, they are as true, but 0.8.2.2's clients do not look so deep
    nested = wrapper(wrapper(at(offsets, size), codec), 1, offsets[-1])
    assert true_offsets(nested) == offsets
    assert not has_absolute_offsets(nested)
    assert has_absolute_offsets(rebuild(nested))
    assert true_offsets(rebuild(nested)) == offsets


@given(
    offsets=st.lists(st.integers(-2, 70), min_size=1, max_size=40),
    last=st.integers(0, 100),
    size=st.sampled_from([3, -3]),
    codec=st.sampled_from(CODECS),
)
@settings(deadline=None)
def test_any_others_are_counted_back_from_the_wrapper(offsets, last, size, codec):
    entry = wrapper(at(offsets, size), codec, last)
    consecutive = list(range(last - len(offsets) + 1, last + 1))
    expected = offsets if is_trusted(offsets, last) else consecutive
    assert true_offsets(entry) == expected
    assert has_absolute_offsets(entry) is (offsets == expected)
    assert true_offsets(rebuild(entry)) == expected


def test_a_step_back_is_seen_inside_and_between_runs_of_equal_sizes():
    for rows in (40, 5000):
        for wrong in (1, rows // 2, rows - 2):
            offsets = list(range(rows))
            offsets[wrong] = offsets[wrong - 1]
            entry = wrapper(at(offsets), 2, rows - 1)
            assert not has_absolute_offsets(entry)
            assert true_offsets(entry) == list(range(rows))


@st.composite
def produced(draw: st.DrawFn, base: int) -> tuple[bytes, int, int]:
    """A wrapper whose offsets are what a producer likes, often what it must not be taken for."""
    steps = draw(gaps)
    count = len(steps)
    last = draw(st.sampled_from([base + count - 1, base + count, count - 1, base]))
    offsets = [last - sum(steps[i + 1 :]) for i in range(count)]
    if draw(st.booleans()):
        offsets = draw(st.permutations(offsets))
    inner = at(offsets, draw(st.sampled_from([3, -3])))
    if draw(st.integers(0, 4)) == 0:
        inner = wrapper(inner, 1)
    return wrapper(inner, draw(st.sampled_from(CODECS)), draw(st.integers(-1, 9))), count, last


@given(data=st.data(), base=st.integers(0, 60))
@settings(deadline=None, max_examples=200)
def test_a_produced_set_is_always_numbered_without_gaps_inside_a_wrapper(data, base):
    parts, counts = [], []
    expected_base = base
    for _ in range(data.draw(st.integers(1, 3))):
        entry, count, _ = data.draw(produced(expected_base))
        parts.append(entry)
        counts.append(count)
        expected_base += count
    buffer = bytearray(b"".join(parts))
    info = assign_offsets(buffer, base, LIMIT)
    found = true_offsets(bytes(buffer))
    assert info.count == len(found) == sum(counts)
    assert (info.first_offset, info.last_offset) == (found[0], found[-1])
    assert found == sorted(set(found)) and found[0] >= base
    assert info.last_offset - base <= sum(counts) - 1 + len(counts)
    position = 0
    for count in counts:
        block = found[position : position + count]
        assert block == list(range(block[0], block[0] + count))
        position += count


def test_one_offset_is_left_out_for_a_wrapper_that_would_look_cleaned():
    odd = bytearray(wrapper(at([3, 10, 12]), 2))
    info = assign_offsets(odd, 10, LIMIT)
    assert (info.count, info.first_offset, info.last_offset) == (3, 11, 13)
    assert true_offsets(bytes(odd)) == [11, 12, 13]
    right = bytearray(wrapper(at([10, 11, 12]), 2))
    assert assign_offsets(right, 10, LIMIT)[:4] == (3, len(right), 10, 12)
    assert has_absolute_offsets(bytes(right))


@pytest.mark.parametrize("stored", ["verbatim", "normalised"])
def test_the_log_ends_behind_such_a_wrapper(tmp_path, stored):
    log = Log(
        str(tmp_path / "t-0"), config(compressed_sets=stored), recovery_point=0, clock=FakeClock()
    )
    for base in (0, 4):
        odd = at([base - 7, base, base + 2])
        info = log.append(memoryview(bytearray(wrapper(odd, 2))))
        assert (info.first_offset, info.last_offset, info.count) == (base + 1, base + 3, 3)
    assert log.log_end_offset == 8
    assert true_offsets(log.read(0, 10**6).read()) == [1, 2, 3, 5, 6, 7]


@given(
    offsets=st.lists(st.integers(0, 20), min_size=1, max_size=30),
    last=st.integers(0, 22),
    size=st.sampled_from([3, -3]),
)
def test_the_two_questions_agree_with_a_plain_reading(offsets, last, size):
    entry = wrapper(at(offsets, size), 1, last)
    found = leaves(entry, 0, len(entry), 1)
    assert found.last_stored == offsets[-1]
    assert (numbered_from(found, last) is None) is is_trusted(offsets, last)
    consecutive = list(range(last - len(offsets) + 1, last + 1))
    assert looks_true_with_gaps(found, last) is (
        is_trusted(offsets, last) and offsets != consecutive
    )
