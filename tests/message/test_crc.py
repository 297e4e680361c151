"""The checksum of messages is zlib's, from whichever library computes it."""

from __future__ import annotations

import zlib

from hypothesis import given
from hypothesis import strategies as st

from kafka08.message.crc import crc32


def test_the_check_value_of_the_polynomial() -> None:
    assert crc32(b"123456789") == 0xCBF43926
    assert crc32(b"") == 0


@given(data=st.binary(max_size=300), tail=st.binary(max_size=100))
def test_it_is_zlibs_and_can_be_continued(data: bytes, tail: bytes) -> None:
    assert crc32(data) == zlib.crc32(data)
    assert crc32(tail, crc32(data)) == zlib.crc32(data + tail)
    assert crc32(memoryview(bytearray(data))) == zlib.crc32(data)
