"""Records: what is checked, where their parts are, and what they are in older formats."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.errors import InvalidMessageError, InvalidRecordError, KafkaError
from kafka08.message import records
from kafka08.message.batch import encode_batch, header_of, seal
from kafka08.message.entry import BATCH, LOG_OVERHEAD, Appended, encode_entry
from kafka08.message.records import ROW, number_plain
from kafka08.message.scan import iter_entries
from kafka08.message.sets import assign_offsets
from kafka08.message.timed_sets import Rules
from tests.message.batches import batch, encode_record, encode_records, simple, timed, varint
from tests.message.batches import records as any_records
from tests.message.sets import pairs

needs_native = pytest.mark.skipif(
    records.native is None, reason="kafka08._native is not built: there is no C compiler"
)
TWINS = [
    pytest.param((records.plain_check, records.plain_rows, records.plain_entries), id="plain"),
    pytest.param((records.check, records.rows, records.entries), id="native", marks=needs_native),
]
every_twin = pytest.mark.parametrize("twin", TWINS)
THREE = [(b"k", b"v", 5, [(b"h", None)]), (None, None, -3, []), (b"", b"", 0, [(b"", b"")])]


def broken(*body: bytes) -> bytes:
    joined = b"".join(body)
    return varint(len(joined)) + joined


@every_twin
def test_rows_and_entries(twin):
    _, rows, entries = twin
    data = encode_records(THREE, [0, 4, 9])
    found = rows(b"xx" + data, 2, len(data) + 2)
    assert len(found) == 3 * ROW
    first, second, third = (found[i : i + ROW].tolist() for i in (0, ROW, 2 * ROW))
    assert first[:4] == [0, 5, 2, 2 + len(encode_record(0, THREE[0]))]
    assert [second[0], second[1], second[5], second[7]] == [4, -3, -1, -1]
    assert third[4] == third[5]
    assert entries(data, 0, len(data), 0, 100, 1000, False) == (
        encode_entry(b"k", b"v", 100) + encode_entry(None, None, 104) + encode_entry(b"", b"", 109),
        3,
        109,
    )
    assert entries(data, 0, len(data), 1, 0, 1000, False)[0] == (
        encode_entry(b"k", b"v", 0, timestamp=1005)
        + encode_entry(None, None, 4, timestamp=997)
        + encode_entry(b"", b"", 9, timestamp=1000)
    )
    assert entries(data, 0, len(data), 1, 0, 7, True)[0].startswith(
        encode_entry(b"k", b"v", 0, timestamp=7, stamped=True)
    )
    assert entries(b"", 0, 0, 0, 100, 0, False) == (b"", 0, -1)
    with pytest.raises(IndexError):
        rows(data, 0, len(data) + 1)


@pytest.mark.parametrize(
    "first_since",
    [records.plain_first_since, pytest.param(records.first_since, marks=needs_native)],
)
def test_the_first_record_since_a_time(first_since):
    data = encode_records(THREE, [0, 4, 9])  # 5, -3 and 0 ms from the base

    def ask(time, base=100):
        return first_since(b"xx" + data, 2, len(data) + 2, base, time)

    assert ask(97) == ask(105) == (0, 105)
    assert ask(106) is None
    assert ask(0, base=-3) == (0, 2)
    rest = data[len(encode_record(0, THREE[0])) :]
    assert first_since(rest, 0, len(rest), 100, 98) == (9, 100)
    assert ask((1 << 63) - 4, base=(1 << 63) - 1) == (4, (1 << 63) - 4)  # wraps as int64
    assert first_since(b"", 0, 0, 0, 0) is None
    with pytest.raises(InvalidRecordError):
        first_since(data, 0, len(data) - 1, 100, 200)


@every_twin
def test_what_is_checked(twin):
    check = twin[0]
    data = encode_records(THREE)
    assert check(data, 0, len(data), 3, 100) == (True, 97, 105)
    keyed = encode_records(simple(b"a", b"b"))
    assert check(keyed, 0, len(keyed), 2, 1000) == (False, 1000, 1001)
    for count in (-1, 0, 2, 4):
        with pytest.raises(InvalidRecordError, match="holds 3"):
            check(data, 0, len(data), count, 0)
    for deltas in ([1, 2, 3], [0, 2, 1], [0, 1, 3], [0, 0, 1], [-1, 0, 1]):
        wrong = encode_records(THREE, deltas)
        with pytest.raises(InvalidRecordError, match="offset delta"):
            check(wrong, 0, len(wrong), 3, 0)
    for stop in range(1, len(data)):
        with pytest.raises(InvalidRecordError):
            check(data, 0, stop, 3, 0)


LARGEST = (1 << 63) - 1
TIMES = {
    # (base timestamp, timestamp deltas): (oldest, newest)
    "in order": (1000, [0, 1, 2], (1000, 1002)),
    "below the base": (1000, [0, -7, 3], (993, 1003)),
    "the base is the time of none": (1000, [5, 7], (1005, 1007)),
    "one has none": (-1, [0, 1001], (1000, 1000)),
    "none has one": (-1, [0, 0], (LARGEST, -1)),
    "below -1": (-5, [0, 1], (-5, -1)),
    "overflow": (LARGEST, [0, 1, 2], (-LARGEST - 1, LARGEST)),
    "underflow": (-LARGEST - 1, [0, -1], (-LARGEST - 1, LARGEST)),
}


@every_twin
@pytest.mark.parametrize("what", TIMES)
def test_the_oldest_and_the_newest_time(twin, what):
    base, deltas, expected = TIMES[what]
    data = encode_records([(b"k", b"v", delta, []) for delta in deltas])
    assert twin[0](data, 0, len(data), len(deltas), base) == (False, *expected)
    plain = twin[0] is records.plain_check
    newest_time_of = records.plain_newest_time_of if plain else records.newest_time_of
    assert newest_time_of(b"x" + data, 1, 1 + len(data), base) == expected[1]
    with pytest.raises(InvalidRecordError):
        newest_time_of(data, 0, len(data) - 1, base)


ZERO, NULL = varint(0), varint(-1)
MALFORMED = {
    "without a length": b"\x80",
    "length 0": ZERO,
    "negative length": NULL + bytes(5),
    "longer than there is": broken(b"\0", ZERO, ZERO, NULL, NULL, ZERO)[:-1],
    "bytes left over": broken(b"\0", ZERO, ZERO, NULL, NULL, ZERO, b"?"),
    "a length of six bytes": b"\x8c\x80\x80\x80\x80\x00" + bytes(6),
    "a length above 32 bits": b"\x8c\x80\x80\x80\x7f" + bytes(6),
    "a delta of six bytes": broken(b"\0", ZERO, b"\x80\x80\x80\x80\x80\x00", NULL, NULL, ZERO),
    "a time of eleven bytes": broken(b"\0", b"\x80" * 10 + b"\0", ZERO, NULL, NULL, ZERO),
    "a time above 64 bits": broken(b"\0", b"\x80" * 9 + b"\x02", ZERO, NULL, NULL, ZERO),
    "a key past the end": broken(b"\0", ZERO, ZERO, varint(2), b"k", NULL, ZERO),
    "a value past the end": broken(b"\0", ZERO, ZERO, NULL, varint(2**31 - 1), ZERO),
    "no header count": broken(b"\0", ZERO, ZERO, NULL, NULL),
    "negative headers": broken(b"\0", ZERO, ZERO, NULL, NULL, NULL),
    "a million headers": broken(b"\0", ZERO, ZERO, NULL, NULL, varint(10**6), bytes(100)),
    "a header without a name": broken(b"\0", ZERO, ZERO, NULL, NULL, varint(1), NULL, NULL),
    "a header cut short": broken(b"\0", ZERO, ZERO, NULL, NULL, varint(1), ZERO, varint(2), b"x"),
}


@every_twin
@pytest.mark.parametrize("what", MALFORMED)
def test_malformed_records(twin, what):
    data = MALFORMED[what]
    check, rows, entries = twin
    for call in (
        lambda: check(data, 0, len(data), 1, 0),
        lambda: rows(data, 0, len(data)),
        lambda: entries(data, 0, len(data), 0, 0, 0, False),
    ):
        with pytest.raises(InvalidRecordError, match="position 0 is malformed"):
            call()


@every_twin
def test_a_million_headers_that_are_there(twin):
    count = 10**4 if twin[0] is records.plain_check else 10**6
    headers = varint(count) + (varint(0) + varint(-1)) * count
    data = broken(b"\0", varint(0), varint(0), varint(1), b"k", varint(1), b"v", headers)
    assert not twin[0](data, 0, len(data), 1, 0)[0]
    assert twin[2](data, 0, len(data), 0, 3, 0, False)[0] == encode_entry(b"k", b"v", 3)


@st.composite
def damaged_records(draw) -> bytes:
    found = draw(st.lists(any_records, max_size=5))
    deltas = draw(
        st.none() | st.lists(st.integers(-2, 9), min_size=len(found), max_size=len(found))
    )
    data = bytearray(encode_records(found, deltas))
    changes = st.tuples(st.integers(0, 2**12), st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF]))
    for at, value in draw(st.lists(changes, max_size=2)):
        if data:
            data[at % len(data)] = value
    return bytes(data[: len(data) - draw(st.sampled_from([0, 0, 0, 1, 7]))])


def outcome(call, *args):
    try:
        return call(*args)
    except InvalidMessageError as error:
        return type(error), str(error)


@needs_native
@settings(max_examples=150)
@given(
    data=damaged_records(),
    count=st.integers(0, 5),
    base=st.sampled_from([0, 5, 2**63 - 1]),
    magic=st.sampled_from([0, 1]),
    stamped=st.booleans(),
)
def test_machine_code_does_the_same(data, count, base, magic, stamped):
    stop = len(data)
    native = records.native
    for time in (0, 2**62, -(2**63)):
        assert outcome(native.check, data, 0, stop, count, time) == outcome(
            records.plain_check, data, 0, stop, count, time
        )
        assert outcome(native.newest_time_of, data, 0, stop, time) == outcome(
            records.plain_newest_time_of, data, 0, stop, time
        )
    assert outcome(native.rows, data, 0, stop) == outcome(records.plain_rows, data, 0, stop)
    args = (data, 0, stop, magic, base, 2**62, stamped)
    assert outcome(native.entries, *args) == outcome(records.plain_entries, *args)


BATCHES = [pytest.param(records.plain_batch_entries, id="plain")]
BATCHES.append(pytest.param(records.batch_entries, id="native", marks=needs_native))
every_form = pytest.mark.parametrize("batch_entries", BATCHES)


@every_form
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("attributes", [0, 8])
def test_batches_become_entries_until_there_is_no_room(batch_entries, magic, attributes):
    parts = [batch(THREE, 10 * n, attributes=attributes) for n in range(3)]
    data = b"x" + b"".join(parts)
    wanted = []
    for part in parts:
        header = header_of(part)
        time = header.max_timestamp if attributes else header.base_timestamp
        args = (magic, header.base_offset, time, bool(attributes))
        wanted.append(records.plain_entries(part, 61, len(part), *args)[0])
    size, stored = len(wanted[0]), len(parts[0])
    for room, count in ((-5, 1), (size, 1), (2 * size - 1, 1), (2 * size, 2), (1000, 3)):
        found = batch_entries(data, 1, len(data), magic, room)
        assert found == (b"".join(wanted[:count]), 1 + count * stored, count < 3)
    assert batch_entries(data, 1, len(data) - 1, magic, 1000)[1] == 1 + 2 * stored
    assert batch_entries(data, 1, 61, magic, 1000) == (b"", 1, False)
    with pytest.raises(IndexError):
        batch_entries(data, 1, len(data) + 1, magic, 1000)


@every_form
@pytest.mark.parametrize(
    "other",
    [
        batch(THREE, codec=1),
        batch(simple(b"a"), attributes=0x20),
        timed([(b"k", b"v" * 100)]),
        encode_entry(b"k", b"v" * 100, 7),
        batch(THREE)[:-1] + b"!",
        batch(THREE)[:8] + bytes(4) + batch(THREE)[12:],
        batch(THREE)[:8] + b"\xff" * 4 + batch(THREE)[12:],
        encode_batch(header_of(batch(THREE)), encode_records(THREE)[:-1]),
    ],
)
def test_batches_stop_before_anything_else(batch_entries, other):
    first, empty = batch(THREE, 5), batch([], 9, last_delta=3)
    data = first + empty + other + first
    found, stop, is_full = batch_entries(data, 0, len(data), 0, 10**6)
    assert stop == len(first) + len(empty) and not is_full
    assert [entry.offset for entry in iter_entries(found)] == [5, 6, 7]
    assert batch_entries(other, 0, len(other), 0, 10**6) == (b"", 0, False)


@needs_native
@settings(max_examples=150)
@given(
    sets=st.lists(st.lists(any_records, max_size=3), max_size=4),
    damage=st.none() | st.tuples(st.integers(0, 10**6), st.integers(0, 255), st.booleans()),
    magic=st.sampled_from([0, 1]),
    room=st.integers(-10, 600),
)
def test_machine_code_passes_over_the_same_batches(sets, damage, magic, room):
    data = bytearray(b"".join([batch(found, 7, attributes=8 * (len(found) % 2)) for found in sets]))
    if damage and data:
        at, byte, sealed = damage
        data[at % len(data)] = byte
        if sealed:
            seal(data, 0, len(batch(sets[0], 7)))
    args = (bytes(data), 0, len(data), magic, room)
    assert records.native.batch_entries(*args) == records.plain_batch_entries(*args)


@given(found=st.lists(any_records, max_size=5))
def test_every_record_becomes_a_message(found):
    data = encode_records(found)
    made, count, last = records.entries(data, 0, len(data), 0, 10, 0, False)
    assert made == b"".join([encode_entry(r[0], r[1], 10 + i) for i, r in enumerate(found)])
    assert count == len(found)
    assert last == (9 + count if count else -1)


def test_headers_are_counted():
    headers = records.header_count
    data = encode_records(THREE)
    assert headers(b"xx" + data, 2, len(data) + 2) == 2
    assert headers(encode_records([(None, None, 0, [])]), 0, 7) == 0
    assert headers(b"", 0, 0) == 0
    with pytest.raises(InvalidRecordError, match="malformed"):
        headers(data, 0, len(data) - 1)
    with pytest.raises(IndexError):
        headers(data, 0, len(data) + 1)


@pytest.mark.parametrize("untimed", [records.plain_untimed, records.untimed])
@given(found=st.lists(pairs, max_size=4), damage=st.sampled_from([0, 0, 1, 9, 25]))
def test_messages_of_format_1_become_format_0(untimed, found, damage):
    data = b"x" + timed(found, 5)
    expected = b"".join([encode_entry(*pair, 12 + i) for i, pair in enumerate(found)])
    assert untimed(data, 1, len(data), 7) == expected
    assert len(list(iter_entries(expected))) == len(found)
    if damage and found:
        with pytest.raises(InvalidMessageError):
            untimed(data, 1, len(data) - damage, 7)


# In one step


@needs_native
def test_a_plain_batch_is_numbered_in_one_step() -> None:
    data = bytearray(batch(THREE, time=1000))
    view = memoryview(data)
    assert number_plain(view, 70, 5, len(data) - LOG_OVERHEAD, 997, 1005) == 3
    assert (header_of(data).base_offset, header_of(data).leader_epoch) == (70, 5)
    changed = bytes(data)
    assert not number_plain(view, 80, 6, len(data) - LOG_OVERHEAD - 1, 997, 1005)
    assert not number_plain(view, 80, 6, len(data), 998, 1005)
    assert not number_plain(view, 80, 6, len(data), 997, 1004)
    assert bytes(data) == changed
    with pytest.raises(BufferError):
        number_plain(memoryview(changed), 80, 6, len(data), 997, 1005)


@given(
    st.lists(any_records, min_size=1, max_size=4),
    st.sampled_from([{}, {"attributes": 0x10}, {"attributes": 0x10, "producer_id": 7}]),
    st.lists(st.tuples(st.integers(0, 70), st.integers(0, 255)), max_size=2),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([(-(1 << 63), (1 << 63) - 1), (900, 1100)]),
)
@settings(max_examples=400)
def test_what_is_numbered_in_one_step_is_numbered_as_ever(
    found, more, changes, is_sealed, extra, times
):
    data = bytearray(batch(found, **more))
    for at, byte in changes:
        data[at % len(data)] = byte
    data = data[: len(data) + min(extra, 0)] + bytes(max(extra, 0))
    if is_sealed:
        seal(data, 0, len(data))
    one, other = bytearray(data), bytearray(data)
    most = 300
    count = number_plain(memoryview(one), 40, 3, most - LOG_OVERHEAD, *times)
    rules = Rules(None, *times, leader_epoch=3)
    try:
        numbered = assign_offsets(memoryview(other), 40, most, rules=rules)
    except KafkaError:
        numbered = None
    if count:
        assert numbered == Appended(count, len(data), 40, 39 + count, 1, 0, BATCH)
        assert one == other
    else:
        assert one == data
    if records.native is not None and numbered is not None and not extra and not changes:
        assert count or not is_right(data)


def is_right(data):
    """Whether the header of a batch has the newest time of its records."""
    header = header_of(data)
    newest = records.newest_time_of(data, 61, len(data), header.base_timestamp)
    return header.max_timestamp == newest
