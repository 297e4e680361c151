"""Damaged requests of later versions against a real broker: as ``test_fuzz`` for those of 0.8.

Every API and version that the broker lists is among them, with sets of all formats and groups whose
members never stay long.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import ProtocolError
from kafka08.protocol import acl_schemas as acl
from kafka08.protocol import admin_schemas as a
from kafka08.protocol import group_schemas as g
from kafka08.protocol import later_schemas as later
from kafka08.protocol import schemas as s
from kafka08.protocol import scram_schemas as scram
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.registry import APIS, Apis, served_by
from kafka08.protocol.requests import encode_request
from tests.live.broker import LiveBroker
from tests.live.test_fuzz import (
    CHECK,
    FUZZ,
    LONGEST_SESSION_MS,
    Fuzz,
    closed_port,
    harm_nobody,
    own,
)
from tests.message.batches import batch, simple, timed, timed_wrapper

FRAMES = int(os.environ.get("KAFKA08_FUZZ_FRAMES", 30_000))
GOLDEN = Path(__file__).parents[1] / "golden" / "modern-vectors.json"


def served(broker: LiveBroker) -> Apis:
    """The APIs and versions that the broker lists."""
    listed = broker.client.call(later.ApiVersionsRequest()).api_keys
    return served_by(APIS, {each.api_key: each.max_version for each in listed})


def golden(path: Path, apis: Apis) -> list[bytes]:
    """Recorded requests of the versions that are served."""
    vectors = json.loads(path.read_text(encoding="utf-8"))["vectors"]
    return [
        bytes.fromhex(each["hex"])
        for each in vectors
        if each["direction"] == "request"
        and each["key"] in apis
        and each["version"] in apis[each["key"]].versions
    ]


def requests() -> list[Any]:
    """Requests that have an effect on this broker, whatever their version."""
    plain = simple(b"value", b"", b"more")
    sets = [
        *(batch(plain, codec=codec) for codec in range(5)),
        batch(plain, producer_id=7, producer_epoch=0, base_sequence=0),
        timed([(b"k", b"a"), (None, None)]),
        timed_wrapper(timed([(b"k", b"a"), (None, b"b")]), 1),
    ]
    produces = [
        s.ProduceRequest(acks, 1, [s.ProduceTopic(FUZZ, [s.ProducePartition(0, memoryview(each))])])
        for each in sets
        for acks in (1, -1)
    ]
    fetches = [
        s.FetchRequest(-1, 1, 1, [s.FetchTopic(FUZZ, [s.FetchPartition(0, offset, 2000)])])
        for offset in (0, 1, 50)
    ]
    ranges = [g.GroupProtocol("range", b"\0\0\0\0\0\1\0\4fuzz\xff\xff\xff\xff")]
    joins = [
        g.JoinGroupRequest("group", LONGEST_SESSION_MS, member, "consumer", ranges, 2, instance)
        for member in ("", "unknown")
        for instance in (None, "static")
    ]
    committed = s.OffsetCommitTopic(FUZZ, [s.OffsetCommitPartition(0, 7, "m")])
    setting = a.ConfigChange("flush.ms", 0, "5")
    return [
        *produces,
        *fetches * 3,
        *joins * 3,
        g.SyncGroupRequest("group", 1, "x", [g.MemberAssignment("x", b"assigned")]),
        g.HeartbeatRequest("group", 1, "x"),
        g.LeaveGroupRequest("group", "x", [g.LeavingMember("x", "static")]),
        g.ListGroupsRequest(),
        g.DeleteGroupsRequest(["group", "other"]),
        g.OffsetDeleteRequest("group", [g.OffsetDeleteTopic(FUZZ, [g.OffsetDeletePartition(0)])]),
        s.OffsetsRequest(-1, [s.OffsetsTopic(FUZZ, [s.OffsetsPartition(0, -1, 1)])]),
        s.MetadataRequest(None),
        s.MetadataRequest([FUZZ, "nobody"]),
        s.OffsetCommitRequest("group", [committed]),
        s.OffsetFetchRequest("group", None),
        s.ConsumerMetadataRequest("group"),
        a.DescribeGroupsRequest(["group"]),
        later.ApiVersionsRequest("fuzz", "1"),
        later.InitProducerIdRequest(None, 1000),
        a.CreateTopicsRequest([a.NewTopic("victim", 2, 1, [], [])], 0, True),
        a.DeleteTopicsRequest(["victim"], 0),
        a.DescribeConfigsRequest([a.DescribedResource(2, FUZZ, None)]),
        a.AlterConfigsRequest(
            [a.AlteredResource(2, "victim", [a.TopicConfigEntry("flush.ms", "5")])], False
        ),
        a.IncrementalAlterConfigsRequest([a.ChangedResource(2, "victim", [setting])], False),
        a.CreatePartitionsRequest([a.MorePartitions(FUZZ, 3, [])], 0, True),
        a.ElectLeadersRequest(None, 0),
        a.DescribeLogDirsRequest(None),
        a.DeleteRecordsRequest(
            [a.DeleteRecordsTopic("victim", [a.DeleteRecordsPartition(0, -1)])], 0
        ),
        acl.DescribeAclsRequest(2, None, None, None, 1, 1, 1),
        acl.CreateAclsRequest([acl.NewAcl(2, FUZZ, "User:fuzz", "*", 3, 3)]),
        acl.DeleteAclsRequest([acl.AclFilter(2, FUZZ, None, None, 1, 1)]),
        scram.DescribeUserScramCredentialsRequest([scram.DescribedUserName("fuzz")]),
        scram.AlterUserScramCredentialsRequest(
            [scram.ScramDeletion("fuzz", 2)],
            [scram.ScramUpsertion("fuzz", 1, 4096, b"salt", b"x" * 32)],
        ),
    ]


def of_transactions(id_: str, producer_id: int, epoch: int) -> list[Any]:
    """Requests of a producer, and about its transaction."""
    producer = id_, producer_id, epoch
    topics = [t.TxnTopic(FUZZ, [0, 1])]
    named = t.TxnToAdd(*producer, verify_only=False, topics=topics)
    marked = [t.MarkedTopic(FUZZ, [1])]
    offsets = [t.TxnOffsetCommitTopic(FUZZ, [t.TxnOffsetCommitPartition(0, 5, "m")])]
    return [
        later.InitProducerIdRequest(id_, 1000, producer_id, epoch),
        t.AddPartitionsToTxnRequest(*producer, topics=topics),
        t.AddPartitionsToTxnRequest(transactions=[named, named._replace(verify_only=True)]),
        t.AddOffsetsToTxnRequest(*producer, "group"),
        t.TxnOffsetCommitRequest(id_, "group", producer_id, epoch, offsets),
        *(t.EndTxnRequest(*producer, committed=commits) for commits in (True, False)),
        t.WriteTxnMarkersRequest([t.TxnMarker(producer_id, epoch, True, marked, 0)]),
        t.DescribeProducersRequest([t.ProducersTopic(FUZZ, [0, 1])]),
        t.DescribeTransactionsRequest([id_, "nobody"]),
        t.ListTransactionsRequest(["Ongoing", "unknown"], [producer_id]),
        t.ListTransactionsRequest([], []),
    ]


def in_every_version(apis: Apis, requests: Iterable[Any]) -> list[bytes]:
    """All of them, where the version can hold what is in them."""
    by_schema = {api.request: api for api in apis.values()}
    bodies = []
    for request in requests:
        for version in by_schema[type(request)].versions if type(request) in by_schema else ():
            with suppress(ProtocolError):
                bodies.append(b"".join(encode_request(request, 1, "fuzz", version))[4:])
    return bodies


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LiveBroker]:
    broker = LiveBroker(
        tmp_path / "broker",
        api_versions_enable="true",
        auto_create_topics_enable="false",
        message_max_bytes=100_000,
        socket_request_max_bytes=1 << 20,
        log_segment_bytes=20_000,
        delete_topic_enable="true",
        group_min_session_timeout_ms=1,
        group_max_session_timeout_ms=LONGEST_SESSION_MS,
        group_initial_rebalance_delay_ms=0,
    )
    yield broker
    broker.kill()


@pytest.mark.scenario("modern-58")
def test_damaged_requests_of_later_versions_harm_nobody(broker: LiveBroker, tmp_path: Path) -> None:
    broker.create_topic(FUZZ, 2)
    broker.create_topic(CHECK)
    broker.create_offsets_topic()
    apis = served(broker)
    made = [*requests(), *of_transactions("nobody", 7, 0)]
    bases = in_every_version(apis, made) * 2 + golden(GOLDEN, apis) + own(closed_port())
    bases = [each for each in bases if int.from_bytes(each[:2], "big") in apis]
    fuzz = Fuzz(broker, bases, apis, FRAMES)
    answered = {api.response.__name__ for api in apis.values()}
    harm_nobody(fuzz, tmp_path, answered)
