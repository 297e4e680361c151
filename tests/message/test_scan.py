"""The walk over entries: what it checks, where it stops, in memory and in files."""

from __future__ import annotations

import os
import struct
import zlib
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka08.errors import InvalidMessageError, MessageSizeTooLargeError, UnknownError
from kafka08.message import scan
from kafka08.message.entry import (
    ABOVE,
    BAD_CRC,
    BAD_DELTA,
    CUT,
    DISORDER,
    END,
    KEYLESS,
    PAUSED,
    SHORT,
    TOO_LARGE,
    WRAPPER,
    Walked,
    encode_entry,
)
from kafka08.message.markers import (
    ABORT,
    COMMIT,
    IN_TRANSACTION,
    NO_TRANSACTION,
    OTHER_CONTROL,
    encode_marker,
)
from kafka08.message.scan import iter_entries, refuse
from tests.message.batches import batch, simple, timed, timed_wrapper
from tests.message.walked import LAST, ONE, PRODUCED, THREE, damaged_sets, produced

needs_native = pytest.mark.skipif(
    scan.native is None, reason="kafka08._native is not built: there is no C compiler"
)
WALKS = [
    pytest.param(scan.plain_walk, id="plain"),
    pytest.param(scan.native and scan.native.walk, id="native", marks=needs_native),
]
every_walk = pytest.mark.parametrize("walk", WALKS)
GZIP = encode_entry(None, b"not looked into", 12, 1)


def ended(walk, data: bytes, **checks: object) -> tuple[int, int]:
    found = walk(bytearray(data), 0, len(data), **checks)
    return found.count, found.ended


@every_walk
def test_whole_plain_entries(walk):
    assert walk(THREE, 0, len(THREE), check_crc=True) == (len(THREE), 3, 10, 15, 0, END, 0)
    assert walk(THREE, len(ONE), len(THREE)) == (len(THREE), 2, 11, 15, 0, END, 0)
    assert walk(b"", 0, 0) == Walked(0, 0, -1, -1, 0, END)


@every_walk
def test_numbering_changes_eight_bytes_of_each(walk):
    data = bytearray(THREE)
    assert walk(data, 0, len(data), number=2**40) == (len(data), 3, 2**40, 2**40 + 2, 0, END, 0)
    assert [entry.offset for entry in iter_entries(data)] == [2**40, 2**40 + 1, 2**40 + 2]
    assert walk(data, 0, len(data), check_crc=True).count == 3


@every_walk
@pytest.mark.parametrize("size", [*range(130), 1000, 65536])
def test_a_changed_byte_fails_the_crc(walk, size):
    entry = bytearray(encode_entry(None, os.urandom(size)))
    assert struct.unpack_from(">I", entry, 12)[0] == zlib.crc32(entry[16:])
    assert ended(walk, entry, check_crc=True) == (1, END)
    entry[16 + len(entry) // 2 % (len(entry) - 16)] ^= 1
    assert ended(walk, entry, check_crc=True) in ((0, BAD_CRC), (0, SHORT))  # another format
    assert ended(walk, entry) in ((1, END), (0, WRAPPER), (0, SHORT))


@every_walk
def test_why_a_walk_stops(walk):
    short = ONE + struct.pack(">qi", 11, 13) + bytes(13)
    assert ended(walk, short) == (1, SHORT)
    assert ended(walk, ONE + struct.pack(">qi", 11, -1)) == (1, SHORT)
    assert ended(walk, ONE + struct.pack(">q", 11)) == (1, CUT)
    assert ended(walk, THREE[:-1]) == (2, CUT)
    assert ended(walk, THREE, max_size=63) == (1, TOO_LARGE)
    assert ended(walk, THREE, max_size=64) == (3, END)
    assert ended(walk, ONE + GZIP) == (1, WRAPPER)
    assert ended(walk, ONE + GZIP, wrappers=True) == (2, END)
    assert walk(ONE + GZIP, 0, len(ONE + GZIP), wrappers=True).codec == 1
    assert ended(walk, THREE, last=9) == (3, END)
    assert ended(walk, THREE, last=10) == (0, DISORDER)
    assert ended(walk, ONE + ONE, last=-1) == (1, DISORDER)
    assert ended(walk, THREE, up_to=11) == (2, ABOVE)
    assert ended(walk, THREE, until=len(ONE)) == (1, PAUSED)
    assert ended(walk, THREE, until=len(ONE) + 1) == (2, PAUSED)
    assert ended(walk, THREE, until=0) == (0, PAUSED)
    assert ended(walk, THREE, keyed=True) == (1, KEYLESS)
    assert ended(walk, ONE + GZIP, keyed=True, wrappers=True) == (2, END)


@every_walk
def test_headers_are_enough_where_entries_reach_beyond_the_buffer(walk):
    header = THREE[: len(ONE) + 17]
    assert walk(header, 0, len(header), reach=len(THREE))[:2] == (len(ONE) + 76, 2)
    assert walk(header, 0, len(header), reach=len(ONE) + 75)[:2] == (len(ONE), 1)
    # nothing is read where nothing may be
    assert walk(header, 0, len(header), reach=len(THREE), check_crc=True)[1] == 2


@every_walk
def test_positions_outside_the_buffer_are_refused(walk):
    for position, end in ((-1, 5), (0, len(ONE) + 1)):
        with pytest.raises(IndexError):
            walk(ONE, position, end)


@every_walk
def test_a_buffer_that_cannot_be_written_is_not_numbered(walk):
    with pytest.raises((TypeError, BufferError)):
        walk(ONE, 0, len(ONE), number=1)


@needs_native
@settings(max_examples=400)
@given(
    data=damaged_sets(),
    number=st.none() | st.integers(0, 2**62),
    check_crc=st.booleans(),
    max_size=st.sampled_from([30, 100, 2**31 - 1]),
    last=st.none() | st.integers(-1, 20),
    up_to=st.none() | st.integers(0, 40),
    until=st.none() | st.integers(0, 500),
    wrappers=st.booleans(),
    keyed=st.booleans(),
    reach=st.none() | st.integers(0, 2000),
    magic=st.sampled_from([0, 1]),
)
def test_machine_code_does_what_the_plain_walk_does(data, **checks):
    plain, native = bytearray(data), bytearray(data)
    assert scan.native.walk(native, 0, len(data), **checks) == scan.plain_walk(
        plain, 0, len(data), **checks
    )
    assert native == plain


@needs_native
def test_plain_messages_are_numbered_in_one_step():
    data = bytearray(THREE)
    assert scan.number_messages(data, 70, len(THREE)) == 3
    assert [entry.offset for entry in iter_entries(data)] == [70, 71, 72]
    with pytest.raises(BufferError):
        scan.number_messages(THREE, 70, len(THREE))


@needs_native
@settings(max_examples=200)
@given(
    data=damaged_sets(has_later=False) | damaged_sets(),
    number=st.integers(0, 2**62),
    max_size=st.sampled_from([100, 1000]),
)
def test_what_is_numbered_in_one_step_is_numbered_as_ever(data, number, max_size):
    one, other = bytearray(data), bytearray(data)
    count = scan.number_messages(one, number, max_size)
    found = scan.plain_walk(other, 0, len(data), number=number, check_crc=True, max_size=max_size)
    assert count == (found.count if found.ended == END else 0)
    if count:
        assert one == other
    else:  # the general way says the same of a set whose first messages were numbered
        again = {"number": number, "check_crc": True, "max_size": max_size}
        assert scan.plain_walk(one, 0, len(data), **again) == found
        assert one == other


@needs_native
@settings(max_examples=200)
@given(data=damaged_sets(), number=st.none() | st.integers(-5, 2**62))
def test_machine_code_finds_the_same_messages(data, number):
    stop = scan.walk(data, 0, len(data)).stop
    for one, other in (
        (scan.native.fields, scan.plain_fields),
        (scan.native.columns, scan.plain_columns),
        (lambda *args: scan.native.messages(*args[:3], 2, args[3]), None),
    ):
        twin = other or (lambda *args: scan.plain_messages(*args[:3], 2, args[3]))
        try:
            wanted = twin(data, 0, stop, number)
        except InvalidMessageError as error:
            with pytest.raises(InvalidMessageError) as found:
                one(data, 0, stop, number)
            assert str(found.value) == str(error)
        else:
            assert one(data, 0, stop, number) == wanted


@needs_native
@given(data=damaged_sets())
def test_machine_code_finds_the_same_times(data):
    stop = scan.walk(data, 0, len(data), wrappers=True).stop
    for unclear in (-1, 1001, (1 << 63) - 1):
        found = scan.native.newest_time(data, 0, stop, unclear)
        assert found == scan.plain_newest_time(data, 0, stop, unclear)
    assert scan.native.message_times(data, 0, stop) == scan.plain_message_times(data, 0, stop)
    for cut in range(len(data)):  # no byte outside is read, whatever the sizes say
        scan.native.message_times(data[:cut], 0, cut)


@needs_native
@given(data=damaged_sets())
def test_machine_code_finds_the_same_producers(data):
    stop = scan.walk(data, 0, len(data), wrappers=True).stop
    expected = scan.plain_producer_batches(data, 0, stop)
    assert scan.native.producer_batches(data, 0, stop) == expected
    for cut in range(len(data)):  # no byte outside is read, whatever the sizes say
        scan.native.producer_batches(data[:cut], 0, cut)


@needs_native
@given(data=damaged_sets())
def test_machine_code_finds_the_same_family(data):
    for cut in range(len(data) + 1):
        found = scan.native.family_end(data[:cut], 0, cut)
        assert found == scan.plain_family_end(data[:cut], 0, cut)


every_family_end = pytest.mark.parametrize(
    "family_end",
    [
        pytest.param(scan.plain_family_end, id="plain"),
        pytest.param(scan.native and scan.native.family_end, id="native", marks=needs_native),
    ],
)


@every_family_end
def test_where_the_family_of_formats_changes(family_end):
    later, both = timed([(b"k", b"v")] * 2), THREE + GZIP
    new = batch(simple(b"a", b"b"), 7)
    for one, other in ((both + later, new), (new + new, later), (later + both, new)):
        data = one + other + one
        assert family_end(data, 0, len(data)) == len(one)
        assert family_end(data, len(one), len(data)) == len(one + other)
        assert family_end(one, 0, len(one)) == len(one)
        # the magic decides, which may be there without the rest
        for stop in range(len(one) + 1, len(data)):
            assert family_end(data, 0, stop) == len(one)
    assert family_end(b"", 0, 0) == 0
    assert family_end(ONE, 0, 16) == 0
    assert family_end(ONE, 0, 17) == len(ONE)
    for size in (0, 13, -1, -(2**31)):
        bad = ONE + struct.pack(">qi", 11, size) + bytes(20)
        assert family_end(bad, 0, len(bad)) == len(ONE)
    large = ONE + struct.pack(">qi", 11, 2**31 - 1) + bytes(20)
    assert family_end(large, 0, len(large)) == len(ONE) + 12 + 2**31 - 1
    for position, stop in ((-1, 5), (0, len(ONE) + 1)):
        with pytest.raises(IndexError):
            family_end(ONE, position, stop)


@every_walk
def test_batches_and_messages_with_timestamps(walk):
    two, three = batch(simple(b"a", b"b"), 7), batch(simple(b"c", b"d"), 20, deltas=[1, 5])
    data = timed([(b"k", b"v"), (None, b"w")], 5) + two + three
    assert walk(data, 0, len(data), wrappers=True, check_crc=True, last=4) == (
        len(data), 4, 5, 25, 0, END, 2,
    )  # fmt: skip
    assert ended(walk, data) == (0, WRAPPER)
    assert ended(walk, data, magic=1) == (2, WRAPPER)
    assert ended(walk, data, magic=1, keyed=True) == (1, KEYLESS)
    assert ended(walk, two, up_to=8, wrappers=True) == (1, END)
    assert ended(walk, two, up_to=7, wrappers=True) == (0, ABOVE)
    assert ended(walk, two + two, last=6, wrappers=True) == (1, DISORDER)
    assert walk(two, 0, 27, reach=len(two))[:4] == (len(two), 1, 7, 8)
    assert walk(two, 0, 26, reach=len(two))[1::4] == (0, CUT)
    assert walk(data, 0, len(data), wrappers=True, until=1)[1] == 1


@every_walk
def test_a_damaged_batch(walk):
    good = batch(simple(b"a", b"b"), 7)
    for at in range(21, len(good)):
        damaged = bytearray(good)
        damaged[at] ^= 1
        found = ended(walk, damaged, check_crc=True, wrappers=True)
        assert found in ((0, BAD_CRC), (0, BAD_DELTA))
    # no crc covers these
    assert ended(walk, good[:12] + b"1234" + good[16:], check_crc=True, wrappers=True) == (1, END)
    for last_delta in (-1, -(2**31)):
        assert ended(walk, batch(simple(b"a"), last_delta=last_delta)) == (0, BAD_DELTA)
    assert ended(walk, batch(simple(b"a"), 2**63 - 1, last_delta=1)) == (0, BAD_DELTA)
    short = bytearray(good)
    short[8:12] = (48).to_bytes(4, "big")
    assert ended(walk, short) == (0, SHORT)
    short = bytearray(timed([(None, None)]))
    short[8:12] = (21).to_bytes(4, "big")
    assert ended(walk, short) == (0, SHORT)


@pytest.mark.parametrize("newest_time", [scan.plain_newest_time, scan.newest_time])
def test_the_newest_time_and_where(newest_time):
    assert newest_time(THREE + GZIP, 0, len(THREE + GZIP)) == (-1, -1)
    late = timed_wrapper(b"", 1, 9, time=5000)
    for data, expected in (
        (timed([(None, None)] * 3, 5), (1002, 7)),
        (THREE + late + timed([(None, None)], 10, time=5000) + ONE, (5000, 9)),
        (batch(simple(b"a", b"b"), 20, last_delta=5), (1001, 25)),
        (batch(simple(b"a"), 20, max_timestamp=-1), (-1, -1)),
    ):
        assert newest_time(data, 0, len(data)) == expected


@pytest.mark.parametrize("size", [0, 2**31 - 13, 2**31 - 1])
def test_an_impossible_size_leads_nowhere_else(size):
    """The first entry of a file, which is looked at without a check, may be damaged."""
    for entry in (timed([(b"k", b"v" * 40)]), produced(1, 5, b"v" * 40)):
        data = entry[:8] + struct.pack(">i", size) + entry[12:]
        for newest_time in (scan.plain_newest_time, scan.newest_time):
            assert newest_time(data, 0, len(data))[0] >= 1000
        for find in (scan.plain_producer_batches, scan.producer_batches):
            assert len(find(data, 0, len(data))) == (entry[16] == 2)


@pytest.mark.parametrize("newest_time", [scan.plain_newest_time, scan.newest_time])
def test_batches_whose_newest_time_is_unclear(newest_time):
    wrong = batch(simple(b"a", b"b"), 20, max_timestamp=-1)
    below = batch(simple(b"a", b"b"), 20, max_timestamp=999)
    for data in (wrong, below):
        assert newest_time(data, 0, len(data), 5000) == (5000, 21)
        assert newest_time(data + timed([(None, None)], 22, time=7), 0, len(data), 5000)[0] == 5000
        for position, stop in ((-1, 10), (0, len(data) + 1)):
            with pytest.raises(IndexError):
                newest_time(data, position, stop, 5000)
    assert newest_time(below, 0, len(below), 998) == (999, 21)
    for right in (
        batch(simple(b"a", b"b"), 20),
        batch(simple(b"a"), 20, max_timestamp=-1, base_timestamp=-1),
        batch(simple(b"a"), 20, max_timestamp=-1, attributes=8),
        batch(simple(b"a"), 20, max_timestamp=-1, attributes=0x40),
        timed([(None, None)], time=-1),
    ):
        assert newest_time(right, 0, len(right), 5000) == newest_time(right, 0, len(right))


@pytest.mark.parametrize("message_times", [scan.plain_message_times, scan.message_times])
def test_the_times_of_messages_of_format_1(message_times):
    largest = (1 << 63) - 1

    def of(*times: int, stamped: bool = False) -> tuple[int, int, bool]:
        entries = [encode_entry(b"k", b"v", timestamp=time, stamped=stamped) for time in times]
        data = b"x" + b"".join(entries)
        return message_times(data, 1, len(data))

    assert of() == of(-1, -1) == (largest, -1, False)
    assert of(5, 3, -1, 4) == (3, 5, False)
    assert of(5, -2) == (-2, 5, True)
    assert of(-largest - 1) == (-largest - 1, -1, True)
    assert of(largest) == (largest, largest, False)
    assert of(5, stamped=True) == (5, 5, True)
    with pytest.raises(IndexError):
        message_times(b"", 0, 1)


ROWS = [
    (1, 300, (1 << 31) - 1, 3, 1, 1001, NO_TRANSACTION, -1),
    (1 << 62, 300, (1 << 31) - 1, 9, 0, 1000, NO_TRANSACTION, -1),
]


@pytest.mark.parametrize("find", [scan.plain_producer_batches, scan.producer_batches])
def test_the_batches_of_producers(find):
    assert find(THREE + GZIP + batch(simple(b"a")), 0, len(THREE)) == []
    assert find(PRODUCED, 0, len(PRODUCED)) == ROWS
    assert find(PRODUCED, len(ONE), len(PRODUCED) - 1) == ROWS
    long = produced(7, 0, b"x" * 100)[:61]
    assert [row[0] for row in find(long, 0, 61)] == [7] and find(long[:60], 0, 60) == []
    for position, stop in ((-1, 10), (0, len(long) + 1)):
        with pytest.raises(IndexError):
            find(long, position, stop)


@pytest.mark.parametrize("find", [scan.plain_producer_batches, scan.producer_batches])
def test_what_batches_are_in_transactions(find):
    of_7 = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0}
    data = batch(simple(b"a"), 3, attributes=0x18, **of_7)
    data += encode_marker(7, 2, ABORT, 5, 900) + encode_marker(8, 0, COMMIT, -1, 901)
    data += batch(simple(b"a"), 3, attributes=0x20, **of_7)
    assert [(row[0], *row[-2:]) for row in find(data, 0, len(data))] == [
        (7, IN_TRANSACTION, -1),
        (7, ABORT, 5),
        (8, COMMIT, -1),
        (7, OTHER_CONTROL, -1),
    ]
    assert find(data, 0, len(data))[1][:6] == (7, 2, -1, 0, 0, 900)
    cut = encode_marker(7, 2, ABORT, 5, 900)[:-1]
    assert find(cut, 0, len(cut))[0][-2:] == (OTHER_CONTROL, -1)


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param(scan.plain_columns, id="plain"),
        pytest.param(scan.native and scan.native.columns, id="native", marks=needs_native),
    ],
)
def test_columns_are_laid_out_as_arrow_has_them(columns):
    offsets, keys, values = columns(THREE, 0, len(THREE))
    assert array("q", offsets).tolist() == [10, 11, 15]
    assert array("i", keys.bounds).tolist() == [0, 1, 1, 4]
    assert (keys.data, keys.valid) == (b"kkey", b"\x05")
    assert array("i", values.bounds).tolist() == [0, 5, 55, 55]
    assert (values.data, values.valid) == (b"value" + b"x" * 50, b"\x03")

    offsets, keys, values = columns(THREE, len(ONE), len(THREE) - len(LAST), 2**40)
    assert array("q", offsets).tolist() == [2**40]
    assert keys is None
    assert values == (array("i", [0, 50]).tobytes(), b"x" * 50, None)
    assert columns(THREE, 5, 5) == (b"", None, None)


@needs_native
def test_machine_code_reads_nothing_outside_the_buffer():
    for read in (scan.native.fields, scan.native.columns, scan.native.messages):
        for start, stop in ((-1, len(THREE)), (0, len(THREE) + 1)):
            with pytest.raises(IndexError):
                read(THREE, start, stop)
    for cut in range(1, len(THREE)):
        if cut not in (len(ONE), len(THREE) - len(LAST)):
            with pytest.raises(InvalidMessageError):
                scan.native.columns(THREE[:cut], 0, cut)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (batch([], last_delta=-1), InvalidMessageError),
        (struct.pack(">qi", 0, 13), InvalidMessageError),
        (ONE[:-1] + b"!", InvalidMessageError),
        (THREE, MessageSizeTooLargeError),
        (ONE + ONE, UnknownError),
    ],
)
def test_refusals(data, error):
    walked = scan.walk(data, 0, len(data), check_crc=True, max_size=60, last=-1)
    with pytest.raises(error):
        refuse(data, walked, 60)


@pytest.mark.parametrize("data", [b"", THREE, THREE[:-1]])
def test_the_end_and_a_cut_entry_are_not_refused(data):
    refuse(data, scan.walk(data, 0, len(data)))
