"""The header of a batch against recorded ones, and the changes a broker makes to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.message import batch as layout
from kafka08.message.batch import Batch, encode_batch, header_of, seal, set_leader_epoch, set_newest
from kafka08.message.crc import crc32c
from kafka08.message.entry import has_right_crc
from tests.message.batches import GOLDEN, batch, golden, simple

BATCHES = [
    name
    for name in GOLDEN
    if len(golden(name)) > 16 and golden(name)[16] == 2 and "bad crc" not in name
]
int16s, int32s = st.integers(-(2**15), 2**15 - 1), st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
headers = st.builds(
    Batch,
    base_offset=int64s,
    size=st.just(0),
    leader_epoch=int32s,
    magic=st.just(2),
    crc=st.just(0),
    attributes=int16s,
    last_delta=int32s,
    base_timestamp=int64s,
    max_timestamp=int64s,
    producer_id=int64s,
    producer_epoch=int16s,
    base_sequence=int32s,
    count=int32s,
)


@pytest.mark.parametrize("name", BATCHES)
def test_a_recorded_batch_is_encoded_to_the_same_bytes(name: str) -> None:
    data = golden(name)
    header = header_of(data)
    whole = data[: header.size + 12]
    assert header.crc == crc32c(whole[layout.BATCH_ATTRIBUTES_AT :])
    assert encode_batch(header._replace(crc=0, size=0), whole[layout.RECORDS_AT :]) == whole


@given(headers, st.binary(max_size=40), st.integers(0, 3))
def test_a_header_is_read_as_it_was_written(header: Batch, records: bytes, before: int) -> None:
    data = bytes(before) + encode_batch(header, records)
    found = header_of(data, before)
    assert found._replace(crc=0) == header._replace(size=49 + len(records))
    assert data[before + 61 :] == records
    assert has_right_crc(data, before, len(data))


@pytest.mark.parametrize(
    ("attributes", "codec", "stamped", "transactional", "control"),
    [
        (0, 0, False, False, False),
        (0x0C, 4, True, False, False),
        (0x12, 2, False, True, False),
        (0x20, 0, False, False, True),
    ],
)
def test_attributes(
    attributes: int, codec: int, stamped: bool, transactional: bool, control: bool
) -> None:
    header = header_of(batch([]))._replace(attributes=attributes)
    assert header.codec == codec
    assert (header.is_stamped, header.is_transactional, header.is_control) == (
        stamped,
        transactional,
        control,
    )


def test_a_compacted_batch_keeps_its_last_offset() -> None:
    assert header_of(batch(simple(b"x"), 40, deltas=[1], last_delta=7)).last_offset == 47


def test_a_leader_epoch_needs_no_new_crc() -> None:
    data = bytearray(b"xx" + batch(simple(b"x")))
    crc = header_of(data, 2).crc
    set_leader_epoch(data, 2, 99)
    assert (header_of(data, 2).leader_epoch, header_of(data, 2).crc) == (99, crc)
    assert has_right_crc(data, 2, len(data))


def test_the_time_of_the_broker_replaces_the_newest_time_only() -> None:
    following = batch(simple(b"z"))
    data = bytearray(batch(simple(b"x", b"y"), codec=1, time=1000))
    stop = len(data)
    before = header_of(data)
    data += following
    set_newest(memoryview(data), 0, stop, 123_456, stamped=True)
    after = header_of(data)
    assert after.is_stamped and after.codec == 1
    assert after._replace(attributes=1, crc=0, max_timestamp=0) == before._replace(
        crc=0, max_timestamp=0
    )
    assert after.max_timestamp == 123_456
    assert has_right_crc(data, 0, stop)
    assert data[stop:] == following


def test_a_changed_batch_is_sealed_again() -> None:
    data = bytearray(batch(simple(b"value")))
    data[-5] ^= 1
    assert not has_right_crc(data, 0, len(data))
    seal(data, 0, len(data))
    assert has_right_crc(data, 0, len(data))
