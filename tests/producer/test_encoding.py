from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.message.sets import assign_offsets, encode_set, iter_messages
from kafka08.producer import encoding
from kafka08.producer.encoding import encode_batch, encode_headers
from kafka08.producer.errors import SerializationError

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


@pytest.mark.parametrize("bad", [[("n", "text")], [(b"n", b"v")], [("n", 5)]])
def test_headers_of_other_types(bad: list) -> None:
    with pytest.raises(SerializationError, match="A header must be a name"):
        encode_headers(bad)
