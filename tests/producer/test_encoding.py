from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.message.batch import header_of
from kafka08.message.sets import assign_offsets, encode_set, iter_messages
from kafka08.producer import encoding
from kafka08.producer.encoding import encode_batch, encode_headers, encode_records
from kafka08.producer.errors import SerializationError
from tests.message import batches

data = st.none() | st.binary(max_size=40)


@given(st.lists(st.tuples(data, data), min_size=1, max_size=30), st.booleans())
def test_the_bytes_of_encode_set(
    records: list[tuple[bytes | None, bytes | None]], keyed: bool
) -> None:
    keys = [key for key, _ in records] if keyed else None
    values = [value for _, value in records]
    pairs = list(zip(keys or [None] * len(values), values, strict=True))
    plain = b"".join(encode_set([pair]) for pair in pairs)
    assert encode_batch(values, keys) == plain
    for codec in (1, 2, 3):
        assert encode_batch(values, keys, codec) == encode_set(pairs, codec)


@pytest.mark.parametrize("count", [1, 3, 4, 300, 70000])
@pytest.mark.parametrize("size", [0, 1, 100])
def test_records_of_one_size(count: int, size: int) -> None:
    values = [bytes([n % 251]) * size for n in range(count)]
    found = bytearray(encode_batch(values, None))
    assert assign_offsets(found, 7, 1 << 20).count == count
    assert [m.value for m in iter_messages(found)] == values
    wrapped = encode_batch(values, None, 2)
    assert [(m.offset, m.value) for m in iter_messages(wrapped)] == list(enumerate(values))


@pytest.mark.skipif(encoding.native is None, reason="kafka08._native is not built")
@given(st.lists(st.tuples(data, data), max_size=30), st.booleans(), st.booleans())
def test_machine_code_writes_the_same_bytes(
    records: list[tuple[bytes | None, bytes | None]], keyed: bool, numbered: bool
) -> None:
    keys = [key for key, _ in records] if keyed else None
    values = [value and bytearray(value) for _, value in records]
    wanted = encoding.plain_entries(values, keys, numbered)
    assert encoding.native.entries(values, keys, numbered) == wanted


times = st.integers(0, 1 << 62)
headers = st.lists(st.tuples(st.text(max_size=5), data), max_size=3)
timed_records = st.lists(st.tuples(data, data, times, headers), min_size=1, max_size=20)


@given(timed_records, st.sampled_from([0, 1, 2, 3, 4]), st.integers(0, 1 << 40))
def test_a_batch_holds_what_was_given(records: list, codec: int, base: int) -> None:
    keys, values, stamps, heads = (list(column) for column in zip(*records, strict=True))
    packed = [encode_headers(each) if each else None for each in heads]
    found = bytearray(encode_records(values, keys, stamps, packed, codec))
    appended = assign_offsets(found, base, len(found))
    assert (appended.count, appended.magic) == (len(records), 2)
    read = [(m.offset, m.key, m.value, m.timestamp, m.headers) for m in iter_messages(found)]
    assert read == [
        (base + row, key, value, time, tuple(its))
        for row, (key, value, time, its) in enumerate(records)
    ]
    header = header_of(found)
    assert (header.base_timestamp, header.max_timestamp) == (stamps[0], max(stamps))
    assert (header.codec, header.producer_id, header.last_delta) == (codec, -1, len(records) - 1)


def test_the_bytes_of_a_batch() -> None:
    record = (b"k", b"v", 3, [(b"h", None), (b"h", b"x")])
    wanted = batches.batch([(None, None, 0, []), record], time=1000)
    packed = encode_headers([("h", None), ("h", b"x")])
    assert encode_records([None, b"v"], [None, b"k"], [1000, 1003], [None, packed]) == wanted


@pytest.mark.skipif(encoding.native_records is None, reason="kafka08._native is not built")
@given(timed_records, st.booleans(), st.booleans())
def test_machine_code_writes_the_same_records(records: list, keyed: bool, headed: bool) -> None:
    keys = [key for key, _, _, _ in records] if keyed else None
    values = [value and bytearray(value) for _, value, _, _ in records]
    packed = [encode_headers(its) for *_, its in records] if headed else None
    stamps = [time for _, _, time, _ in records]
    wanted = encoding.plain_records(values, keys, stamps, packed)
    assert encoding.native_records.records(values, keys, stamps, packed) == wanted


@pytest.mark.parametrize("bad", [[("n", "text")], [(b"n", b"v")], [("n", 5)]])
def test_headers_of_other_types(bad: list) -> None:
    with pytest.raises(SerializationError, match="A header must be a name"):
        encode_headers(bad)
