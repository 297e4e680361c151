"""Key -> offset: the dict and the table in machine code do the same, within the same bound."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import InvalidMessageError
from kafka08.log.cleaning import offset_map
from kafka08.log.cleaning.offset_map import PlainOffsetMap
from kafka08.message.entry import encode_entry

SECRET = b"0123456789abcdef"
needs_native = pytest.mark.skipif(
    offset_map.native is None, reason="kafka08._native is not built: there is no C compiler"
)
MAPS = [
    pytest.param(PlainOffsetMap, id="plain"),
    pytest.param(
        offset_map.native and offset_map.native.OffsetMap, id="native", marks=needs_native
    ),
]
every_map = pytest.mark.parametrize("make", MAPS)

records = st.lists(
    st.tuples(
        st.none() | st.integers(0, 12).map(lambda n: b"k" * n),
        st.none() | st.binary(max_size=30),
    ),
    max_size=40,
)


def plain_set(pairs: list[tuple[bytes | None, bytes | None]]) -> bytes:
    return b"".join(encode_entry(key, value, n) for n, (key, value) in enumerate(pairs))


@every_map
def test_the_last_offset_counts(make):
    found = make(10, SECRET)
    long = b"x" * 1000
    for offset, key in enumerate([b"", b"a", long, b"a", long]):
        found.put(key, offset)
    assert len(found) == 3
    assert [found.get(key) for key in (b"", b"a", long, b"other", long[1:])] == [0, 3, 4, -1, -1]


@every_map
def test_it_grows_as_far_as_needed_and_beyond_its_room(make):
    found = make(3000, SECRET)
    for number in range(10_000):
        found.put(b"%d" % number, number)
    assert len(found) == 10_000
    assert all(found.get(b"%d" % number) == number for number in range(10_000))


@every_map
def test_adding_stops_where_the_room_ends(make):
    data = plain_set([(b"a", b""), (None, b""), (b"a", b""), (b"b", b""), (None, b"c")])
    for room, messages in ((1, 1), (2, 4), (3, 5)):
        position, count, last = make(room, SECRET).add_plain(data, 0, len(data))
        assert (count, last) == (messages, messages - 1)
        assert make(9, SECRET).add_plain(data, position, len(data))[1] == 5 - messages
    assert make(1, SECRET).add_plain(b"", 0, 0) == (0, 0, -1)


@every_map
@pytest.mark.parametrize("at", [21, 28], ids=["key", "value"])
def test_impossible_lengths_are_refused(make, at):
    data = bytearray(encode_entry(b"key", b"value"))
    data[at] = 200
    with pytest.raises(InvalidMessageError):
        make(9, SECRET).add_plain(bytes(data), 0, len(data))
    with pytest.raises(InvalidMessageError):
        make(9, SECRET).survivors(bytes(data), 0, len(data), -1)


@every_map
@given(pairs=records, tombstones_below=st.integers(-1, 40))
def test_survivors(make, pairs, tombstones_below):
    found = make(100, SECRET)
    data = plain_set(pairs)
    found.add_plain(data, 0, len(data))
    stretches, kept = found.survivors(data, 0, len(data), tombstones_below)
    latest = {key: offset for offset, (key, _) in enumerate(pairs)}
    stay = [
        encode_entry(key, value, offset)
        for offset, (key, value) in enumerate(pairs)
        if key is None
        or (latest[key] == offset and not (value is None and offset < tombstones_below))
    ]
    assert b"".join(data[start:stop] for start, stop in stretches) == b"".join(stay)
    assert kept == len(stay)
    assert all(stop < start for (_, stop), (start, _) in pairwise(stretches))


def test_nobody_can_foresee_what_stands_for_a_key():
    digests = {PlainOffsetMap(9, secret)._digest(b"k" * 17) for secret in (SECRET, SECRET[::-1])}
    assert len(digests) == 2
