"""The fields of entries of all formats, read and written at their positions."""

from __future__ import annotations

import struct
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import InvalidMessageError
from kafka08.message import entry
from kafka08.message.entry import encode_entry, key_and_value
from tests.message.batches import batch, simple
from tests.message.sets import pairs


def test_the_bytes_of_an_entry() -> None:
    body = b"\x00\x02" + b"\x00\x00\x00\x01k" + b"\xff\xff\xff\xff"
    expected = struct.pack(">qiI", 7, len(body) + 4, crc32(body)) + body
    assert encode_entry(b"k", None, 7, 2) == expected
    body = b"\x01\x09" + struct.pack(">q", 1000) + b"\xff\xff\xff\xff" + b"\x00\x00\x00\x01v"
    expected = struct.pack(">qiI", 7, len(body) + 4, crc32(body)) + body
    assert encode_entry(None, b"v", 7, 1, timestamp=1000, stamped=True) == expected


@pytest.mark.parametrize("timestamp", [None, 1000])
@given(pair=pairs, offset=st.integers(-1, 2**63 - 1), codec=st.integers(0, 3))
def test_what_is_written_is_read(timestamp, pair, offset, codec):
    data = b"before" + encode_entry(*pair, offset, codec, timestamp=timestamp)
    assert entry.offset_and_stop(data, 6) == (offset, len(data))
    assert entry.codec_of(data, 6) == codec
    assert entry.magic_of(data, 6) == (timestamp is not None)
    assert entry.is_later(data, 6) is (timestamp is not None)
    assert entry.has_right_crc(data, 6, len(data))
    assert entry.crc_of(data, 6) == crc32(data[6 + 16 :])
    spans = key_and_value(data, 6, len(data))
    assert [None if span is None else data[slice(*span)] for span in spans] == list(pair)
    if timestamp is not None:
        assert entry.time_of(data, 6) == timestamp


def test_a_new_time_gets_a_right_crc() -> None:
    data = bytearray(encode_entry(b"k", b"v", 7, 2, timestamp=1000))
    entry.set_time(data, 0, len(data), 2000)
    assert data == encode_entry(b"k", b"v", 7, 2, timestamp=2000)
    entry.set_time(data, 0, len(data), 3000, stamped=True)
    assert data == encode_entry(b"k", b"v", 7, 2, timestamp=3000, stamped=True)


def test_a_batch_has_the_offset_of_its_last_record() -> None:
    data = batch(simple(b"a", b"b"), 7, 2, last_delta=5)
    assert entry.offset_and_stop(data, 0) == (12, len(data))
    assert entry.codec_of(data) == 2
    assert entry.is_later(data)
    assert entry.has_right_crc(data, 0, len(data))
    damaged = data[:-1] + bytes([data[-1] ^ 1])
    assert not entry.has_right_crc(damaged, 0, len(damaged))


@pytest.mark.parametrize("timestamp", [None, 1000])
def test_lengths_that_reach_past_the_entry(timestamp: int | None) -> None:
    good = encode_entry(b"key", b"value", timestamp=timestamp)
    for stop in range(len(good) - 12, len(good)):
        with pytest.raises(InvalidMessageError, match="impossible field lengths"):
            key_and_value(good, 0, stop)


def test_an_unknown_magic_is_read_as_format_0() -> None:
    data = bytearray(encode_entry(b"k", b"v", 7, 1))
    data[16] = 9
    assert not entry.is_later(data)
    assert entry.codec_of(data) == 1
    assert key_and_value(data, 0, len(data)) == ((22, 23), (27, 28))
