"""Batches of records, as they are read again, byte for byte, and by both engines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.message import record_sets
from kafka08.message.batch import TRANSACTIONAL, header_of
from kafka08.message.record_sets import Sender, encode_records
from kafka08.message.sets import assign_offsets, iter_messages
from kafka08.producer.encoding import encode_headers
from tests.message import batches

data = st.none() | st.binary(max_size=40)
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


@pytest.mark.skipif(record_sets.native is None, reason="kafka08._native is not built")
@given(timed_records, st.booleans(), st.booleans())
def test_machine_code_writes_the_same_records(records: list, keyed: bool, headed: bool) -> None:
    keys = [key for key, _, _, _ in records] if keyed else None
    values = [value and bytearray(value) for _, value, _, _ in records]
    packed = [encode_headers(its) for *_, its in records] if headed else None
    stamps = [time for _, _, time, _ in records]
    wanted = record_sets.plain_records(values, keys, stamps, packed)
    assert record_sets.native.records(values, keys, stamps, packed) == wanted


def test_the_producer_of_a_batch() -> None:
    sender = Sender(7, 2, 40, TRANSACTIONAL)
    wanted = batches.batch(
        [(b"k", b"v", 0, [])], time=5, attributes=0x10, producer_id=7, producer_epoch=2,
        base_sequence=40,
    )  # fmt: skip
    assert encode_records([b"v"], [b"k"], [5], None, sender=sender) == wanted
