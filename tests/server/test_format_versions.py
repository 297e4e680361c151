"""Produce 1 to 8 and Fetch 1 to 11: formats by version, limits, refusals."""

from __future__ import annotations

import pytest

from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages
from kafka08.protocol.schemas import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
    RequestHeader,
)
from kafka08.server.apis.fetch import FetchApi
from kafka08.server.apis.produce import ProduceApi
from kafka08.server.rebuild import ConsumerView
from tests.message.batches import batch, simple, timed
from tests.server.support import Rig, message_set

LOTS = 1 << 20


def produce(rig: Rig, version: int, data: bytes) -> tuple[int, int]:
    api = ProduceApi(rig.runtime, rig.replicas, ConsumerView(rig.runtime))
    topics = [ProduceTopic("t", [ProducePartition(0, memoryview(bytearray(data)))])]
    answer = api.handle(RequestHeader(0, version, 1, "c"), ProduceRequest(1, 1000, topics))
    assert answer is not None
    found = answer.topics[0].partitions[0]
    return found.error, found.base_offset


def fetch(rig: Rig, version: int, offset: int = 0, size: int = LOTS, most: int = LOTS):
    api = FetchApi(rig.runtime, rig.replicas, ConsumerView(rig.runtime))
    request = FetchRequest(
        -1, 0, 1, [FetchTopic("t", [FetchPartition(0, offset, size)])], max_bytes=most
    )
    found = api.handle(RequestHeader(1, version, 1, "c"), request).topics[0].partitions[0]
    data = found.message_set
    return found, bytes(data if isinstance(data, bytes) else data.read())


@pytest.mark.parametrize(
    ("version", "data", "code"),
    [
        (3, batch(simple(b"a")), 0),
        (8, batch(simple(b"a"), codec=4), 0),
        (6, batch(simple(b"a"), codec=4), 76),
        (2, batch(simple(b"a"), codec=4), 0),
        (3, batch(simple(b"a")) * 2, 87),
        (3, b"", 87),
        (3, timed([(b"k", b"a")]), 87),
        (3, message_set("a"), 87),
        (3, batch(simple(b"a"), count=2), 87),
        (2, batch(simple(b"a"), count=2), 2),
        (2, timed([(b"k", b"a")]), 0),
    ],
)
def test_what_each_version_of_produce_takes(rig: Rig, version: int, data: bytes, code: int) -> None:
    rig.lead()
    assert produce(rig, version, data) == (code, -1 if code else 0)


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (11, 2)])
def test_the_format_by_the_version_of_fetch(rig: Rig, version: int, magic: int) -> None:
    rig.lead()
    produce(rig, 3, batch(simple(b"a", b"b"), codec=1))
    found, data = fetch(rig, version)
    assert {entry.magic for entry in iter_entries(data)} == {magic}
    assert [m.value for m in iter_messages(data)] == [b"a", b"b"]
    assert found.last_stable_offset == (2 if version >= 4 else -1)
    assert found.log_start_offset == (0 if version >= 4 else -1)


def test_the_first_batch_is_whole_and_the_limit_is_for_all(rig: Rig) -> None:
    rig.lead()
    for _ in range(3):
        produce(rig, 3, batch(simple(b"a" * 100, b"b")))
    one = len(batch(simple(b"a" * 100, b"b")))
    for version in (3, 4, 11):
        for size, most in ((10, LOTS), (LOTS, 10)):
            _, data = fetch(rig, version, 0, size, most)
            assert [m.offset for m in iter_messages(data)] == [0, 1]
    assert len(fetch(rig, 4, 0, LOTS, 2 * one)[1]) == 2 * one
