"""Fields that a producer fills in: what the broker stores instead, and what it refuses.

The expected fields are those that Kafka 3.9.1 stores for the same bytes, where the comment on a row
says nothing else.
"""

from __future__ import annotations

import pytest

from kafka08.errors import InvalidRecordError, InvalidTimestampError, KafkaError
from kafka08.message.batch import encode_batch, header_of
from kafka08.message.compression import compress
from kafka08.message.entry import encode_entry, has_right_crc, is_stamped, time_of
from kafka08.message.scan import newest_time
from kafka08.message.sets import assign_offsets, iter_messages
from kafka08.message.timed_sets import Rules
from kafka08.message.times import Found, first_since, has_unclear, newest
from tests.message import captured
from tests.message.batches import Record, batch, encode_record, timed, timed_wrapper
from tests.message.sets import LIMIT

T = 1_600_000_000_000
LARGEST = (1 << 63) - 1
CODECS = (0, 1, 2, 3, 4)


def records(*deltas: int) -> list[Record]:
    return [(b"k", b"v%d" % number, delta, []) for number, delta in enumerate(deltas)]


# what the producer says: (timestamp deltas, base timestamp, header), and what is stored of it:
# (largest timestamp, attributes without the codec)
STORED = {
    "right": ((0, 5, 2), T, {}, (T + 5, 0)),
    "largest timestamp -1": ((0, 5, 2), T, {"max_timestamp": -1}, (T + 5, 0)),
    "largest timestamp 0": ((0, 5, 2), T, {"max_timestamp": 0}, (T + 5, 0)),
    "largest timestamp of the first": ((0, 5, 2), T, {"max_timestamp": T}, (T + 5, 0)),
    "largest timestamp below the first": ((0, 5), T, {"max_timestamp": T - 9}, (T + 5, 0)),
    "largest timestamp of years ahead": ((0, 5), T, {"max_timestamp": LARGEST}, (T + 5, 0)),
    "largest timestamp, smallest": ((0, 5), T, {"max_timestamp": -LARGEST}, (T + 5, 0)),
    "base timestamp -1": ((0, T + 1), -1, {"max_timestamp": -1}, (T, 0)),
    "base timestamp of no record": ((7, 9), T, {"max_timestamp": T}, (T + 9, 0)),
    "no times": ((0, 0), -1, {"max_timestamp": -1}, (-1, 0)),
    "no times, one claimed": ((0, 0), -1, {"max_timestamp": T}, (-1, 0)),
    "times below -1": ((0, 1), -50, {"max_timestamp": -49}, (-1, 0)),
    "times that overflow": ((0, 5), LARGEST - 2, {"max_timestamp": LARGEST}, (LARGEST - 2, 0)),
    "the broker's time": ((0, 5), T, {"attributes": 8}, (T + 5, 0)),
    # 3.9.1 refuses it
    "the broker's time, none": ((0, 5), T, {"attributes": 8, "max_timestamp": -1}, (T + 5, 0)),
    # 3.9.1 keeps the claim, which is the time of no record then
    "the broker's time, high": (
        (0, 5),
        T,
        {"attributes": 8, "max_timestamp": T + 10**9},
        (T + 5, 0),
    ),
    # 3.9.1 keeps the bit, and its cleaner takes the base timestamp for the end of tombstones
    "a delete horizon": ((0, 5), T, {"attributes": 0x40}, (T + 5, 0)),
    "unknown bits": ((0, 5), T, {"attributes": 0x180}, (T + 5, 0x180)),
    "unknown bits and -1": ((0, 5), T, {"attributes": 0x180, "max_timestamp": -1}, (T + 5, 0)),
    "a transaction": ((0, 5), T, {"attributes": 0x10, "producer_id": 7}, (T + 5, 0x10)),
    "a transaction, and -1": (
        (0, 5),
        T,
        {"attributes": 0x18, "producer_id": 7, "max_timestamp": -1},
        (T + 5, 0x10),
    ),
    "leader epoch": ((0, 5), T, {"leader_epoch": 9}, (T + 5, 0)),
    # 3.9.1 refuses it
    "base offset": ((0, 5), T, {"base_offset": 7}, (T + 5, 0)),
    "sequence without a producer": ((0, 5), T, {"base_sequence": 8}, (T + 5, 0)),
    "epoch without a producer": ((0, 5), T, {"producer_epoch": 3}, (T + 5, 0)),
}
every_codec = pytest.mark.parametrize("codec", CODECS)


@every_codec
@pytest.mark.parametrize("claim", STORED)
def test_what_a_batch_says(claim: str, codec: int) -> None:
    deltas, base, header, (largest, attributes) = STORED[claim]
    sent = batch(records(*deltas), 0, codec, time=base, **header)
    data = bytearray(sent)
    assert assign_offsets(data, 50, LIMIT, rules=Rules(leader_epoch=4)).count == len(deltas)
    found = header_of(data)
    assert (found.max_timestamp, found.attributes) == (largest, attributes | codec)
    assert (found.base_offset, found.leader_epoch) == (50, 4)
    assert found[7:8] + found[9:] == header_of(sent)[7:8] + header_of(sent)[9:]
    assert data[61:] == sent[61:]
    assert has_right_crc(data, 0, len(data))
    assert (data[16:] == sent[16:]) == (
        largest == header_of(sent).max_timestamp
        and attributes | codec == header_of(sent).attributes
    )
    times = [message.timestamp for message in iter_messages(data)]
    assert times == [(base + delta + (1 << 63)) % (1 << 64) - (1 << 63) for delta in deltas]
    assert newest_time(data, 0, len(data))[0] == max([-1, *times])
    for time in {*times, T, T + 5} - {-1}:
        expected = next((Found(50 + n, t) for n, t in enumerate(times) if t >= time), None)
        if time >= 0:
            assert first_since(data, time) == expected


REFUSED = {
    "a control batch": ({"attributes": 0x20}, InvalidRecordError),
    "a marker": ({"attributes": 0x30, "producer_id": 7, "producer_epoch": 0}, InvalidRecordError),
    "a transaction without a producer": ({"attributes": 0x10}, InvalidRecordError),
    "more records than there are": ({"count": 3, "last_delta": 2}, InvalidRecordError),
    "fewer records than there are": ({"count": 1, "last_delta": 0}, InvalidRecordError),
    "another last offset": ({"last_delta": 5}, InvalidRecordError),
    "another count": ({"count": 3}, InvalidRecordError),
    # 3.9.1 stores those without a codec, with these offsets
    "equal offset deltas": ({"deltas": [0, 0], "last_delta": 1}, InvalidRecordError),
    "descending offset deltas": ({"deltas": [1, 0], "last_delta": 1}, InvalidRecordError),
    "a gap in the offset deltas": ({"deltas": [0, 7], "last_delta": 1}, InvalidRecordError),
}


@every_codec
@pytest.mark.parametrize("claim", REFUSED)
def test_what_a_batch_must_not_say(claim: str, codec: int) -> None:
    header, error = REFUSED[claim]
    with pytest.raises(error):
        assign_offsets(bytearray(batch(records(0, 5), 0, codec, time=T, **header)), 0, LIMIT)


@every_codec
def test_attributes_of_a_record_do_not_matter(codec: int) -> None:
    record = bytearray(encode_record(0, records(0)[0]))
    record[1] = 7
    packed = compress(codec, record, magic=2) if codec else bytes(record)
    data = bytearray(encode_batch(header_of(batch(records(0), 0, codec, time=T)), packed))
    assert assign_offsets(data, 0, LIMIT).count == 1
    assert [message.timestamp for message in iter_messages(data)] == [T]


@every_codec
@pytest.mark.parametrize("attributes", [0, 8, 0x40, 0x180])
def test_the_broker_s_time_takes_the_place_of_claims(codec: int, attributes: int) -> None:
    for largest in (-1, T, LARGEST):
        sent = batch(records(0, 5), 0, codec, time=T, attributes=attributes, max_timestamp=largest)
        data = bytearray(sent)
        assign_offsets(data, 0, LIMIT, rules=Rules(append_time=T + 99))
        assert header_of(data).attributes == codec | 8
        assert header_of(data).max_timestamp == T + 99
        assert has_right_crc(data, 0, len(data))


@every_codec
def test_a_set_is_numbered_twice_if_others_overtake_it(codec: int) -> None:
    inner = timed([(b"k", b"a"), (b"k", b"b")])
    wrapper = timed_wrapper(inner, codec % 4 or 1)
    for sent in (batch(records(0, 5), 0, codec, time=T), inner, wrapper):
        for rules in (Rules(append_time=T), Rules()):
            once, twice = bytearray(sent), bytearray(sent)
            assign_offsets(twice, 3, LIMIT, rules=rules)
            for data in (once, twice):
                assert assign_offsets(data, 7, LIMIT, rules=rules).count == 2
            assert once == twice


BOUNDS = {
    # (timestamp deltas, base timestamp, header): whether all records are from T to T + 10
    "in range": ((0, 10), T, {}, True),
    "the largest timestamp hides one ahead": ((0, 11), T, {"max_timestamp": T}, False),
    "the largest timestamp hides all": ((0, 11), T, {"max_timestamp": -1}, False),
    "one before the first": ((5, -1), T, {}, False),
    "the base timestamp is the time of none": ((9, 10), T - 5, {}, False),
    "only the base timestamp is outside": ((5, 15), T - 5, {}, True),
    "only the largest timestamp is outside": ((0, 1), T, {"max_timestamp": T + 99}, True),
    "without a time": ((0, 0), -1, {"max_timestamp": -1}, True),
    "one without a time": ((0, T + 1), -1, {"max_timestamp": -1}, True),
    "one without a time, one ahead": ((0, T + 12), -1, {"max_timestamp": -1}, False),
    "below -1": ((0, 0), -2, {}, False),
    "the broker's time hides one ahead": ((0, 11), T, {"attributes": 8, "max_timestamp": T}, False),
    "overflow": ((0, 12), LARGEST - 5, {}, False),
}


@every_codec
@pytest.mark.parametrize("name", BOUNDS)
def test_each_record_is_in_range(name: str, codec: int) -> None:
    deltas, base, header, is_right = BOUNDS[name]
    if name == "the base timestamp is the time of none":
        deltas = (4, 10)
    data = bytearray(batch(records(*deltas), 0, codec, time=base, **header))
    rules = Rules(oldest=T, newest=T + 10)
    if is_right:
        assert assign_offsets(data, 0, LIMIT, rules=rules).count == len(deltas)
    else:
        with pytest.raises(InvalidTimestampError):
            assign_offsets(data, 0, LIMIT, rules=rules)


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_each_message_of_format_1_is_in_range(codec: int) -> None:
    rules = Rules(oldest=1000, newest=1002)
    for first, is_right in ((1000, True), (999, False), (1001, False)):
        inner = timed([(b"k", b"v")] * 3, time=first)
        for data in (inner, *(timed_wrapper(inner, codec, time=claim) for claim in (0, -1, 1001))):
            if is_right:
                assert assign_offsets(bytearray(data), 0, LIMIT, rules=rules).count == 3
            else:
                with pytest.raises(InvalidTimestampError):
                    assign_offsets(bytearray(data), 0, LIMIT, rules=rules)


def test_what_a_message_of_format_1_says() -> None:
    for time, stamped, expected in (
        (T, False, T),
        (T, True, T),
        (-1, False, -1),
        (-5, False, -1),
        (-LARGEST, False, -1),
        (-1, True, -1),
    ):
        data = bytearray(encode_entry(b"k", b"v", timestamp=time, stamped=stamped))
        assert assign_offsets(data, 3, LIMIT).count == 1
        assert bytes(data) == encode_entry(b"k", b"v", 3, timestamp=expected)


@pytest.mark.parametrize("codec", [1, 2, 3])
@pytest.mark.parametrize("stamped", [False, True])
@pytest.mark.parametrize("claim", [-1, 0, 999, 1002, LARGEST, -LARGEST])
def test_what_a_wrapper_says(claim: int, stamped: bool, codec: int) -> None:
    inner = timed([(b"k", b"v")] * 3)
    packed = compress(codec, inner, magic=1)
    sent = encode_entry(None, packed, 2, codec, timestamp=claim, stamped=stamped)
    data = bytearray(sent)
    assign_offsets(data, 0, LIMIT)
    assert data == encode_entry(None, packed, 2, codec, timestamp=1002)
    assert (data == sent) == (claim == 1002 and not stamped)


def test_attributes_of_messages_in_a_wrapper_do_not_matter() -> None:
    inner = encode_entry(b"k", b"v", timestamp=7, stamped=True)
    data = bytearray(timed_wrapper(inner, 1))
    assign_offsets(data, 0, LIMIT)
    assert (is_stamped(data, 0), time_of(data, 0)) == (False, 7)
    (message,) = iter_messages(data)
    assert (message.timestamp, message.timestamp_type) == (7, 0)


@pytest.mark.parametrize("client", captured.UNTIMED)
def test_what_a_real_client_sends(client: str) -> None:
    data = bytearray(captured.UNTIMED[client])
    assert header_of(data).max_timestamp == -1
    assert has_unclear(data)
    assign_offsets(data, 0, LIMIT)
    assert header_of(data).max_timestamp == captured.TIME + 2
    assert not has_unclear(data)
    for number in range(3):
        at = captured.TIME + number
        assert first_since(data, at) == Found(number, at)


# Sets that were stored unchecked.


@every_codec
@pytest.mark.parametrize("largest", [-1, 0, T - 1])
def test_a_stored_batch_that_cannot_be_right(codec: int, largest: int) -> None:
    data = batch(records(0, 5, 2), 50, codec, time=T, max_timestamp=largest)
    after = batch(records(0), 53, time=T + 9)
    assert has_unclear(data)
    assert newest(data) == (T + 5, 52)
    assert newest(data + after) == (T + 9, 53)
    assert first_since(data + after, T + 1) == Found(51, T + 5)
    assert first_since(after[:0] + data, T + 6) is None
    assert first_since(data + after, T + 6) == Found(53, T + 9)
    assert first_since(data * 3, T + 1, 51) == Found(51, T + 5)


@every_codec
def test_a_stored_batch_that_can_be_right(codec: int) -> None:
    for data, time in (
        (batch(records(0, 5), 50, codec, time=T), T + 5),
        (batch(records(0, 0), 50, codec, time=-1, max_timestamp=-1), -1),
        (batch(records(0, 5), 50, codec, time=T, attributes=8, max_timestamp=9), 9),
        # the base timestamp is where tombstones end
        (batch(records(-70, -65), 50, codec, time=T, attributes=0x40), T - 65),
    ):
        assert not has_unclear(data)
        assert newest(data)[0] == newest_time(data, 0, len(data))[0] == time


def test_a_stored_batch_that_cannot_be_read() -> None:
    data = bytearray(batch(records(0, 5), 50, 1, time=T, max_timestamp=-1))
    data[61:] = bytes(len(data) - 61)
    assert newest(data) == (-1, -1)
    with pytest.raises(KafkaError):
        first_since(data, T)
