"""The messages inside wrappers and batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import InvalidMessageError, InvalidRecordError, KafkaError, UnknownError
from kafka08.message.compression import CorruptCompressionError, InflatesTooFarError
from kafka08.message.entry import codec_of, encode_entry
from kafka08.message.leaves import Leaves, inflated_records, leaves, offsets_rise, timed_leaves
from kafka08.message.records import untimed
from tests.message.batches import batch, encode_records, simple, timed, timed_wrapper
from tests.message.sets import CODECS, cut, plain, set_byte, wrapper

PAIRS = [(b"a", b"1"), (None, b"22"), (b"c", None)]


def opened(data: bytes, **options: int) -> Leaves:
    return leaves(data, 0, len(data), codec_of(data, 0), **options)


@pytest.mark.parametrize("codec", CODECS)
def test_the_leaves_of_a_wrapper_are_its_inflated_value(codec: int) -> None:
    inner = plain(PAIRS, first=7)
    assert opened(wrapper(inner, codec)) == (inner, 3, True, 9, len(inner), False)


def test_a_cut_tail_is_left_out() -> None:
    inner = plain(PAIRS)
    found = opened(wrapper(inner + inner[:20], 1))
    assert found[:4] == (inner, 3, False, 2)
    assert found.inflated == len(inner) + 20


def test_an_empty_wrapper_has_no_last_offset() -> None:
    assert opened(wrapper(b"", 1)) == (b"", 0, True, -1, 0, False)


def test_nested_wrappers_are_opened_in_their_place() -> None:
    first, second, third = (plain([pair], n) for n, pair in enumerate(PAIRS))
    inner = first + wrapper(second, 1, 1) + third
    found = opened(wrapper(inner, 2))
    assert found[:4] == (first + second + third, 3, False, 2)
    assert found.inflated == len(inner) + len(second)
    with pytest.raises(InvalidMessageError, match="nested too deep"):
        opened(wrapper(wrapper(wrapper(first, 1), 1), 1))


def test_the_bound_holds_for_all_levels_together() -> None:
    inner = plain([(None, b"x" * 1000)])
    nested = wrapper(inner, 1)
    data = wrapper(nested, 1)
    room = len(nested) + len(inner)
    assert opened(data, max_inflated=room).count == 1
    with pytest.raises(InflatesTooFarError):
        opened(data, max_inflated=room - 1)


def test_crcs_are_checked_on_demand() -> None:
    data = wrapper(bytes(set_byte(plain([(None, b"value")]), -1, 0)), 1)
    assert opened(data).count == 1
    with pytest.raises(InvalidMessageError, match="fails its crc"):
        opened(data, check_crc=True)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (encode_entry(None, None, 0, 1), CorruptCompressionError),
        (encode_entry(None, b"not gzip", 0, 1), CorruptCompressionError),
        (encode_entry(None, b"", 0, 7), UnknownError),
        (encode_entry(None, b"", 0, 4), UnknownError),
        (wrapper(timed(PAIRS), 1), InvalidRecordError),
        (wrapper(batch(simple(b"x")), 1), InvalidRecordError),
        (timed_wrapper(plain(PAIRS), 1), InvalidRecordError),
        (timed_wrapper(timed_wrapper(timed(PAIRS), 1), 1), InvalidRecordError),
        (wrapper(bytes(set_byte(plain([(None, b"v")]), 11, 3)), 1), InvalidMessageError),
    ],
)
def test_what_cannot_be_opened(data: bytes, error: type[KafkaError]) -> None:
    with pytest.raises(error):
        opened(data)


@pytest.mark.parametrize("codec", CODECS)
def test_a_wrapper_of_format_1_has_relative_offsets(codec: int) -> None:
    """The true ones follow from that of the wrapper, which is the last message's."""
    inner = timed(PAIRS)
    data = timed_wrapper(inner, codec, offset=52)
    assert timed_leaves(data, 0, len(data)) == (inner, 3, 0, 2, True)
    found = opened(data)
    assert found.converted and found[1:4] == (3, False, 52)
    assert found.data == plain(PAIRS, first=50)


def test_relative_offsets_that_do_not_rise_are_counted_instead() -> None:
    parts = [encode_entry(*pair, 0, timestamp=5) for pair in PAIRS]
    data = timed_wrapper(b"".join(parts), 1, offset=52)
    assert not timed_leaves(data, 0, len(data)).ordered
    assert opened(data).data == plain(PAIRS, first=50)


def test_a_plain_message_of_format_1_is_its_own_leaf() -> None:
    data = timed([(b"k", b"v")], first=8)
    assert opened(data) == (encode_entry(b"k", b"v", 8), 1, False, 8, 0, True)
    assert opened(data).data == bytes(untimed(data, 0, len(data), 0))


@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_the_leaves_of_a_batch(codec: int) -> None:
    data = batch(simple(b"1", b"2", b"3"), 40, codec, deltas=[0, 3, 4])
    found = opened(data)
    expected = [encode_entry(b"k", value, 40 + d) for value, d in ((b"1", 0), (b"2", 3), (b"3", 4))]
    assert found.data == b"".join(expected)
    assert (found.count, found.last_stored, found.converted) == (3, 44, True)
    records = encode_records(simple(b"1", b"2", b"3"), [0, 3, 4])
    assert bytes(inflated_records(data, 0, len(data))) == records
    assert found.inflated == len(records)


def test_a_control_batch_has_no_leaves() -> None:
    assert opened(batch(simple(b"commit"), 40, attributes=0x30)) == (b"", 0, False, -1, 0, True)


@given(st.lists(st.integers(0, 5), max_size=6))
def test_whether_offsets_rise(offsets: list[int]) -> None:
    data = b"".join([encode_entry(None, b"", offset) for offset in offsets])
    assert offsets_rise(data) == (offsets == sorted(set(offsets)))
    assert [offset for offset, _ in cut(data)] == offsets
