"""Entries that 0.8.2.2 cannot read become messages of format 0, and losses are counted."""

from __future__ import annotations

from collections import Counter

import pytest

from kafka08.groups.records import (
    Committed,
    GroupPartition,
    GroupRecord,
    encode_group,
    encode_group_key,
    encode_key,
    encode_value,
)
from kafka08.message.batch import header_of
from kafka08.message.entry import codec_of, encode_entry
from kafka08.message.sets import encode_set, iter_messages
from tests.message.batches import batch, simple, timed, timed_wrapper
from tests.message.sets import plain
from tools.logs.lowering import filler, lowered, lowered_offsets

KEY = GroupPartition("g", "t", 3)
COMMIT = (encode_key(KEY), encode_value(Committed(42, "m", 7)))
GROUP = (encode_group_key("g"), encode_group(GroupRecord("consumer", 1, None, None, [])))
# As Kafka 3.9 writes them: key 1, value 3 with a leader epoch.
LATER_KEY = b"\0\1" + COMMIT[0][2:]
LATER_VALUE = b"\0\3" + COMMIT[1][2:10] + b"\0\0\0\5" + COMMIT[1][10:]


def messages(data: bytes) -> list[tuple]:
    return [message[:3] for message in iter_messages(data)]


@pytest.mark.scenario("modern-55")
@pytest.mark.parametrize("codec", range(5))
def test_batches(codec: int) -> None:
    data = batch(simple(b"a", b"b"), 7, codec)
    low = lowered(data)
    assert low is not None
    assert low.codec == (1 if codec == 4 else codec)
    assert low.lost == Counter(headers=2, timestamps=2)
    assert low.table == plain([(b"k", b"a"), (b"k", b"b")], first=7)


def test_what_a_batch_does_not_have_is_not_lost() -> None:
    low = lowered(batch([(b"k", b"a", 0, [])], time=-1))
    assert low is not None and low.lost == Counter()


def test_control_batches_go() -> None:
    low = lowered(batch([(b"\0\0\0\1", b"", 0, [])], 3, attributes=0x30))
    assert low is not None and (low.table, low.lost["control"]) == (b"", 1)


@pytest.mark.scenario("modern-55")
def test_messages_of_format_1() -> None:
    for data in (timed([(b"k", b"a")], 5), timed_wrapper(timed([(b"k", b"a")]), 1, 5)):
        low = lowered(data)
        assert low is not None and low.lost["timestamps"] == 1
        assert (low.table, low.codec) == (encode_entry(b"k", b"a", 5), codec_of(data))
    low = lowered(timed([(b"k", b"a")], time=-1))
    assert low is not None and low.lost["timestamps"] == 0


def test_format_0_stays() -> None:
    for codec in range(4):
        assert lowered(encode_set([(b"k", b"v")], codec)) is None
        assert lowered_offsets(encode_set([COMMIT, (COMMIT[0], None)], codec, 4)) is None


@pytest.mark.parametrize("codec", [0, 1])
def test_groups_are_left_out_of_committed_offsets(codec: int) -> None:
    records = [COMMIT, GROUP, (LATER_KEY, LATER_VALUE), (LATER_KEY, None), (b"", b"x")]
    kept: list[tuple] = [(0, *COMMIT), (2, *COMMIT), (3, COMMIT[0], None)]
    data = batch([(key, value, 0, []) for key, value in records], 0, codec)
    assert header_of(data).count == 5
    low = lowered_offsets(data)
    assert low is not None and (low.codec, low.lost["groups"]) == (codec, 2)
    assert messages(low.table) == kept
    if codec:
        data = encode_set(records, codec)
        low = lowered_offsets(data)
        assert low is not None and (low.codec, low.lost["groups"]) == (codec, 2)
        assert messages(low.table) == kept
    else:
        low = lowered_offsets(encode_set([GROUP]))
        assert low is not None and (low.table, low.lost["groups"]) == (b"", 1)


def test_fillers_can_be_read() -> None:
    assert messages(filler(9, offsets_topic=False)) == [(9, b"", b"")]
    data = filler(9, offsets_topic=True)
    assert lowered_offsets(data) is None and messages(data)[0][2] is None
