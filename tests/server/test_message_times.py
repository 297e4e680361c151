"""Timestamps and the settings of a topic: refused, replaced, or not converted away."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.message.batch import header_of
from kafka08.message.compression import compress
from kafka08.message.entry import encode_entry, time_of
from kafka08.message.sets import check_follower_set, iter_messages
from kafka08.protocol.schemas import ProducePartition, ProduceRequest, ProduceTopic, RequestHeader
from kafka08.server.apis.produce import ProduceApi
from kafka08.server.rebuild.view import ConsumerView
from tests.message.batches import batch, simple
from tests.server.support import Rig, message_set
from tests.server.test_format_versions import fetch

KEY = ("t", 0)
BARE = [(b"k", b"v", 0, []), (b"k", b"w", 7, [])]


def produce(rig: Rig, version: int, data: bytes) -> Any:
    api = ProduceApi(rig.runtime, rig.replicas, ConsumerView(rig.runtime))
    topics = [ProduceTopic("t", [ProducePartition(0, memoryview(bytearray(data)))])]
    answer = api.handle(RequestHeader(0, version, 1, "c"), ProduceRequest(1, 1000, topics))
    assert answer is not None
    return answer.topics[0].partitions[0]


@pytest.mark.scenario("modern-30")
@pytest.mark.parametrize(
    ("settings", "before", "after"),
    [
        ({"message.timestamp.difference.max.ms": "1000"}, 1000, 1000),
        ({"message.timestamp.before.max.ms": "1000"}, 1000, None),
        ({"message.timestamp.after.max.ms": "1000"}, None, 1000),
        ({}, None, None),
    ],
)
def test_timestamps_out_of_range_are_refused(
    rig: Rig, settings: dict[str, str], before: int | None, after: int | None
) -> None:
    rig.topic_settings["t"] = settings
    partition = rig.lead()
    now = rig.clock.millis()
    for sign, most in ((-1, before), (1, after)):
        within = now + sign * (most or 1 << 40)
        assert produce(rig, 3, batch(BARE[:1], time=within)).error == 0
        beyond = batch(BARE[:1], time=within + sign)
        end = partition.any_log().log_end_offset
        assert produce(rig, 3, beyond).error == (0 if most is None else 32)
        old = encode_entry(b"k", b"v", timestamp=within + sign)
        refused = [produce(rig, version, old).error for version in (0, 1, 2)]
        assert refused == ([0] * 3 if most is None else [2, 2, 32])
        if most is not None:
            assert partition.any_log().log_end_offset == end
    assert produce(rig, 0, message_set("format 0")).error == 0
    assert produce(rig, 2, encode_entry(b"k", b"v", timestamp=-1)).error == 0


@pytest.mark.scenario("modern-22")
@pytest.mark.parametrize("codec", [0, 1])
def test_log_append_time(rig: Rig, codec: int) -> None:
    rig.topic_settings["t"] = {"message.timestamp.type": "LogAppendTime"}
    log = rig.lead().any_log()
    now = rig.clock.millis()
    assert produce(rig, 3, batch(simple(b"a", b"b"), codec=codec)).log_append_time == now
    inner = b"".join(encode_entry(b"k", b"v", n, timestamp=n) for n in range(2))
    old = inner
    if codec:
        old = encode_entry(None, compress(codec, inner, magic=1), 1, codec, timestamp=1)
    assert produce(rig, 2, old).log_append_time == now
    assert produce(rig, 2, message_set("format 0")).log_append_time == -1
    data = fetch(rig, 11)[1] + fetch(rig, 11, 2)[1]  # an answer has one family of formats
    assert check_follower_set(data, 1 << 20).last_offset == 4
    header = header_of(data)
    assert (header.is_stamped, header.max_timestamp) == (True, now)
    assert header.base_timestamp == 1000
    at = header.size + 12
    assert (time_of(data, at), data[at + 17]) == (now, 8 | codec)
    assert [m.value for m in iter_messages(data)] == [b"a", b"b", b"v", b"v", b"format 0"]
    assert log.segments[0].newest == (now, 1)
    # Fetch 2 gets the broker's time too
    data = fetch(rig, 2)[1]
    assert time_of(data, 0) == now
    assert data[17] & 8


def test_create_time_is_the_producers(rig: Rig) -> None:
    rig.lead()
    assert produce(rig, 3, batch(simple(b"a"))).log_append_time == -1
    assert not header_of(fetch(rig, 4)[1]).is_stamped


@pytest.mark.parametrize(("version", "code"), [(0, 17), (1, 17), (2, 35), (3, 35), (4, 0), (11, 0)])
def test_conversion_can_be_switched_off(rig: Rig, version: int, code: int) -> None:
    rig.topic_settings["t"] = {"message.downconversion.enable": "false"}
    rig.lead()
    rig.append("format 0")
    assert fetch(rig, version)[0].error == 0
    produce(rig, 3, batch(BARE, codec=1))
    found, data = fetch(rig, version)
    assert (found.error, bool(data)) == (code, not code)
    assert fetch(rig, version, 1, 30)[0].error == code  # not even one entry is whole


def test_format_1_needs_no_conversion_for_those_that_read_it(rig: Rig) -> None:
    rig.topic_settings["t"] = {"message.downconversion.enable": "false"}
    rig.lead()
    produce(rig, 2, encode_entry(b"k", b"v", timestamp=5))
    assert [fetch(rig, version)[0].error for version in (0, 2, 4)] == [17, 0, 0]
