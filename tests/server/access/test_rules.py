"""Every API, sent by somebody who may do nothing, and by somebody who may do some of it.

The bytes of the answers are those of Kafka 2.8.2 to a user without any rule. As a replica a fetch
is refused with the code of 0.10.2.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import LaterCode
from kafka08.network.peer import Peer, current_peer
from kafka08.network.server import ConnectionClosed
from kafka08.protocol import acl_schemas as acl
from kafka08.protocol import admin_schemas as a
from kafka08.protocol import group_schemas as g
from kafka08.protocol import later_schemas as later
from kafka08.protocol import schemas as s
from kafka08.protocol import scram_schemas as scram
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.registry import APIS
from kafka08.security.acls import (
    CLUSTER,
    Acl,
    Operation,
    PatternType,
    Permission,
    Resource,
    ResourceType,
)
from kafka08.security.audit import AuditLog
from kafka08.security.authorizer import AclAuthorizer
from kafka08.server.access.guard import guarded
from kafka08.server.access.rules import rules
from kafka08.server.requests.dispatch import Dispatcher
from tests.server.support import Rig, message_set, partition_state, texts

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
T, U, G = Resource(TOPIC, "t"), Resource(TOPIC, "u"), Resource(GROUP, "g")
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
ALICE, ADMIN = "User:alice", "User:admin"
TOPIC_CODE, GROUP_CODE, CLUSTER_CODE = 29, 30, 31


class Guarded:
    """A broker behind an authorizer, and the one who sends to it."""

    def __init__(self, rig: Rig, **options: bool) -> None:
        self.rig = rig
        self.peer = Peer("127.0.0.1:5000", ALICE)
        rig.lead("t")
        rig.lead("u")
        rig.know(partition_state("t"), partition_state("u"), brokers=[])
        everyone = options.get("allow_everyone", False)
        self.authorizer = AclAuthorizer([ADMIN], everyone, AuditLog(rig.clock))
        table = rules(rig.cache, rig.config.auto_create_topics_enable)
        runtime: Any = rig.runtime
        handlers = guarded(rig.handlers, table, runtime, self.authorizer)
        rig.dispatcher = Dispatcher(runtime, handlers, rig.apis)

    def allow(self, resource: Resource, *operations: Operation, to: str = ALICE) -> None:
        self.authorizer.put(
            resource, [Acl(to, Permission.ALLOW, operation) for operation in operations]
        )

    def send(self, key: int, body: str, version: int = 0) -> str:
        """The body of the answer, in hex; both may hold blanks."""
        frame = f"{key:04x}{version:04x}00000007000163{body}".replace(" ", "")
        reply = self.rig.send(bytes.fromhex(frame))
        assert reply is not None
        assert reply[4:8] == b"\0\0\0\7"
        return reply[8:].hex()


@pytest.fixture
def later_rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(later=True)


@pytest.fixture
def guarded_rig(rig: Rig) -> Iterator[Guarded]:
    yield from sent_by_alice(Guarded(rig))


@pytest.fixture
def later_guarded(later_rig: Rig) -> Iterator[Guarded]:
    yield from sent_by_alice(Guarded(later_rig))


def sent_by_alice(found: Guarded) -> Iterator[Guarded]:
    token = current_peer.set(found.peer)
    yield found
    current_peer.reset(token)


@pytest.mark.scenario("security-28")
def test_every_api_has_a_rule(rig: Rig) -> None:
    assert rules(rig.cache, creates_topics=True).keys() >= APIS.keys()


FETCH = "000003e8 00000001 00000001 000174 00000001 00000000 0000000000000000 00000400"
COMMIT = "00000001 000174 00000001 00000000 0000000000000005"
REFUSED = {
    "Produce": (0, "0001 000003e8 00000001 000174 00000001 00000000 00000000", 0,
        "00000001 000174 00000001 00000000 001d ffffffffffffffff"),
    "Fetch": (1, f"ffffffff {FETCH}", 0,
        "00000001 000174 00000001 00000000 001d ffffffffffffffff 00000000"),
    "Fetch as replica 1": (1, f"00000001 {FETCH}", 0,
        "00000001 000174 00000001 00000000 001f ffffffffffffffff 00000000"),
    "Offsets": (2, "ffffffff 00000001 000174 00000001 00000000 ffffffffffffffff 00000001", 0,
        "00000001 000174 00000001 00000000 001d 00000000"),
    "Metadata": (3, "00000002 000174 00046e6f7065", 0,
        "00000000 00000002 001d 000174 00000000 001d 00046e6f7065 00000000"),
    "Metadata of all": (3, "00000000", 0, "00000000 00000000"),
    "LeaderAndIsr": (4, "00000009 7fffffff 00000000 00000000", 0, "001f 00000000"),
    "StopReplica": (5, "00000009 7fffffff 01 00000001 000174 00000000", 0, "001f 00000000"),
    "UpdateMetadata": (6, "00000009 7fffffff 00000000 00000000", 0, "001f"),
    "OffsetCommit v0": (8, f"000167 {COMMIT} 0000", 0,
        "00000001 000174 00000001 00000000 001e"),
    "OffsetCommit v1": (8,
        f"000167 ffffffff 0000 {COMMIT} ffffffffffffffff 0000", 1,
        "00000001 000174 00000001 00000000 001e"),
    "OffsetFetch v0": (9, "000167 00000001 000174 00000001 00000000", 0,
        "00000001 000174 00000001 00000000 ffffffffffffffff 0000 001e"),
    "OffsetFetch v1": (9, "000167 00000001 000174 00000001 00000000", 1,
        "00000001 000174 00000001 00000000 ffffffffffffffff 0000 001e"),
    "ConsumerMetadata": (10, "000167", 0, "001e ffffffff 0000 ffffffff"),
    "DescribeGroups": (15, "00000001 000167", 0,
        "00000001 001e 000167 0000 0000 0000 00000000"),
    "CreateTopics": (19, "00000001 00036e6577 00000001 0001 00000000 00000000 00000000", 0,
        "00000001 00036e6577 001d"),
    "DeleteTopics": (20, "00000001 000174 00000000", 0, "00000001 000174 001d"),
}  # fmt: skip


@pytest.mark.scenario("security-28", "security-36")
@pytest.mark.parametrize("name", REFUSED)
def test_28_a_refusal_has_the_bytes_of_later_releases(guarded_rig: Guarded, name: str) -> None:
    rig = guarded_rig.rig
    key, body, version, answer = REFUSED[name]
    before = dict(rig.zookeeper.nodes)
    assert guarded_rig.send(key, body, version) == answer.replace(" ", "")
    assert rig.zookeeper.nodes == before
    assert rig.roles.controller_epoch == 1
    for topic in ("t", "u"):
        log = rig.logs.get_log(TopicPartition(topic, 0))
        assert log is not None and log.log_end_offset == 0


@pytest.mark.scenario("security-36")
def test_36_nobody_but_brokers_shuts_a_broker_down(guarded_rig: Guarded) -> None:
    asked: list[int] = []
    guarded_rig.rig.controller.controlled_shutdown = asked.append
    request = s.ControlledShutdownRequest(1)
    assert guarded_rig.rig.call(request) == (CLUSTER_CODE, [])
    assert asked == []
    guarded_rig.allow(CLUSTER, Operation.CLUSTER_ACTION)
    guarded_rig.rig.controller.controlled_shutdown = lambda broker_id: asked.append(broker_id) or []
    assert guarded_rig.rig.call(request) == (0, [])
    assert asked == [1]


@pytest.mark.scenario("security-36")
def test_36_brokers_need_cluster_action_alone(guarded_rig: Guarded) -> None:
    rig = guarded_rig.rig
    guarded_rig.allow(CLUSTER, Operation.CLUSTER_ACTION)
    rig.lead("v", replicas=[1, 2], isr=[1, 2])
    assert rig.fetch(("v", 0, 0, 1000), replica_id=2) == {("v", 0): (0, 0, b"")}
    for replica_id in (2, s.DEBUG_REPLICA_ID):
        topics = [s.OffsetsTopic("v", [s.OffsetsPartition(0, -1, 1)])]
        answer = rig.call(s.OffsetsRequest(replica_id, topics))
        assert answer.topics[0].partitions[0].error == 0
    assert rig.fetch(("v", 0, 0, 1000))[("v", 0)][0] == TOPIC_CODE


@pytest.mark.scenario("security-29")
def test_29_everybody_may_while_there_are_no_rules(rig: Rig) -> None:
    found = Guarded(rig, allow_everyone=True)
    rig.append("a")
    assert rig.fetch(("t", 0, 0, 1000))[("t", 0)][0] == 0
    found.allow(T, Operation.ALL, to="User:bob")
    both = rig.fetch(("t", 0, 0, 1000), ("u", 0, 0, 1000))
    assert (both[("t", 0)][0], both[("u", 0)][0]) == (TOPIC_CODE, 0)


@pytest.mark.scenario("security-30")
def test_30_a_request_is_served_in_part(guarded_rig: Guarded) -> None:
    rig = guarded_rig.rig
    guarded_rig.allow(T, WRITE, READ)
    data = message_set("x")
    assert rig.produce(("u", 0, data), ("t", 0, data)) == {
        ("t", 0): (0, 0),
        ("u", 0): (TOPIC_CODE, -1),
    }
    fetched = rig.fetch(("t", 0, 0, 1000), ("u", 0, 0, 1000), max_wait_ms=5000, min_bytes=10_000)
    assert texts(fetched[("t", 0)][2]) == ["x"]
    assert fetched[("u", 0)] == (TOPIC_CODE, -1, b"")
    assert rig.runtime.slept == []


@pytest.mark.scenario("security-32")
def test_32_hosts_count(guarded_rig: Guarded) -> None:
    guarded_rig.authorizer.put(T, [Acl(ALICE, Permission.ALLOW, READ, "127.0.0.1")])
    rig = guarded_rig.rig
    assert rig.fetch(("t", 0, 0, 1000))[("t", 0)][0] == 0
    for address, code in (("127.0.0.2:5000", TOPIC_CODE), ("127.0.0.1:5001", 0)):
        token = current_peer.set(Peer(address, ALICE))
        assert rig.fetch(("t", 0, 0, 1000))[("t", 0)][0] == code
        current_peer.reset(token)


@pytest.mark.scenario("security-33")
def test_33_without_acks_the_connection_is_closed(guarded_rig: Guarded) -> None:
    rig = guarded_rig.rig
    guarded_rig.allow(T, WRITE)
    data = message_set("x")
    assert rig.produce(("t", 0, data), acks=0) is None
    with pytest.raises(ConnectionClosed):
        rig.produce(("u", 0, data), ("t", 0, data), acks=0)
    for topic, end in (("t", 2), ("u", 0)):
        log = rig.logs.get_log(TopicPartition(topic, 0))
        assert log is not None and log.log_end_offset == end


@pytest.mark.scenario("security-34")
def test_34_a_right_that_goes_while_a_fetch_waits_is_gone(guarded_rig: Guarded) -> None:
    rig = guarded_rig.rig
    guarded_rig.allow(T, READ, WRITE)
    guarded_rig.allow(U, READ)

    def withdraw() -> None:
        rig.append("late")
        guarded_rig.allow(T, DESCRIBE)

    rig.runtime.while_waiting.append(withdraw)
    fetched = rig.fetch(("t", 0, 0, 1000), ("u", 0, 0, 1000), max_wait_ms=1000)
    assert fetched == {("t", 0): (TOPIC_CODE, -1, b""), ("u", 0): (0, 0, b"")}
    guarded_rig.allow(T, READ)
    rig.runtime.while_waiting.append(lambda: guarded_rig.allow(U, DESCRIBE))
    fetched = rig.fetch(("t", 0, 1, 1000), max_wait_ms=1000)
    assert fetched == {("t", 0): (0, 1, b"")}


def topics_of(answer: Any) -> dict[str, int]:
    return {each.topic: each.error for each in answer.topics}


@pytest.mark.scenario("security-35")
def test_35_a_list_of_all_topics_has_the_senders_own(guarded_rig: Guarded) -> None:
    rig = guarded_rig.rig
    guarded_rig.allow(T, WRITE)  # implies Describe
    assert topics_of(rig.call(s.MetadataRequest([]))) == {"t": 0}
    assert topics_of(rig.call(s.MetadataRequest(["u", "t"]))) == {"t": 0, "u": TOPIC_CODE}
    guarded_rig.peer.principal = ADMIN
    rig.know(partition_state("t"))
    guarded_rig.peer.principal = ALICE
    assert len(rig.call(s.MetadataRequest([])).brokers) == 3


@pytest.mark.scenario("security-35")
@pytest.mark.parametrize(
    ("resource", "operation", "code"),
    [
        (Resource(TOPIC, "new"), DESCRIBE, TOPIC_CODE),
        (Resource(TOPIC, "new"), Operation.CREATE, TOPIC_CODE),  # Create does not imply Describe
        (Resource(TOPIC, "new"), Operation.ALL, 5),
        (Resource(TOPIC, "n", PatternType.PREFIXED), Operation.ALL, 5),
    ],
)
def test_35_a_topic_is_created_by_those_who_may(
    guarded_rig: Guarded, resource: Resource, operation: Operation, code: int
) -> None:
    rig = guarded_rig.rig
    rig.register(1)
    guarded_rig.allow(resource, operation)
    assert topics_of(rig.call(s.MetadataRequest(["new"]))) == {"new": code}
    assert ("/brokers/topics/new" in rig.zookeeper.nodes) is (code == 5)


@pytest.mark.scenario("security-35")
def test_35_create_on_the_cluster_is_for_all_topics(guarded_rig: Guarded) -> None:
    rig = guarded_rig.rig
    rig.register(1)
    guarded_rig.allow(CLUSTER, Operation.CREATE)
    guarded_rig.allow(Resource(TOPIC, "*"), DESCRIBE)
    assert topics_of(rig.call(s.MetadataRequest(["new"]))) == {"new": 5}
    new = a.NewTopic("other", 1, 1, [], [])
    answer = rig.call(a.CreateTopicsRequest([new], 0, False))
    assert answer.topics[0].error != TOPIC_CODE


@pytest.mark.scenario("security-35")
def test_35_without_creation_a_missing_topic_is_missing(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(auto_create_topics_enable="false")
    found = Guarded(rig)
    token = current_peer.set(found.peer)
    found.allow(Resource(TOPIC, "*"), DESCRIBE)
    assert topics_of(rig.call(s.MetadataRequest(["new"]))) == {"new": 3}
    current_peer.reset(token)


@pytest.mark.scenario("security-42")
def test_42_offsets_need_the_group_and_the_topic(guarded_rig: Guarded) -> None:
    rig = guarded_rig.rig
    guarded_rig.allow(G, READ)
    guarded_rig.allow(U, READ)
    commits = [s.OffsetCommitTopic(t, [s.OffsetCommitPartition(0, 5, "")]) for t in ("t", "u")]
    answer = rig.call(s.OffsetCommitRequestV0("g", commits))
    codes = {each.topic: each.partitions[0].error for each in answer.topics}
    assert codes == {"t": TOPIC_CODE, "u": 0}
    assert "/consumers/g/offsets/t" not in rig.zookeeper.nodes
    asked = [s.OffsetFetchTopic(t, [0]) for t in ("t", "u")]
    answer = rig.call(s.OffsetFetchRequestV0("g", asked))
    found = {each.topic: tuple(each.partitions[0])[:4] for each in answer.topics}
    assert found == {"t": (0, -1, "", TOPIC_CODE), "u": (0, 5, "", 0)}
    guarded_rig.allow(G, DESCRIBE)
    answer = rig.call(s.OffsetFetchRequestV0("g", asked[1:]))
    assert answer.topics[0].partitions[0].offset == 5
    answer = rig.call(s.OffsetCommitRequestV0("g", commits))
    assert {each.partitions[0].error for each in answer.topics} == {GROUP_CODE}


LATER: list[tuple[Any, int, Any]] = [
    (g.JoinGroupRequest("g", 6000, "m", "consumer", []), 0, (30, -1, "", "", "m", [])),
    (g.HeartbeatRequest("g", 1, "m"), 0, (30,)),
    (g.LeaveGroupRequest("g", "m"), 0, (30,)),
    (g.SyncGroupRequest("g", 1, "m", []), 0, (30, b"")),
    (g.ListGroupsRequest(), 0, (0, [])),
    (g.DeleteGroupsRequest(["g"]), 0, (0, [("g", 30)])),
    (g.OffsetDeleteRequest("g", []), 0, (30, 0, [])),
    (s.OffsetFetchRequest("g", None), 5, (0, [], 30)),
    (later.InitProducerIdRequest(None, 0), 0, (0, 31, -1, -1)),
    (a.DescribeLogDirsRequest(None), 0, (0, [])),
    (acl.DescribeAclsRequest(1, None, None, None, 1, 1), 1, (0, 31, None, [])),
    (acl.CreateAclsRequest([acl.NewAcl(2, "t", ALICE, "*", 2, 3)]), 1, (0, [(31, None)])),
    (
        acl.DeleteAclsRequest([acl.AclFilter(1, None, None, None, 1, 1)]),
        1,
        (0, [(31, None, [])]),
    ),
    (scram.DescribeUserScramCredentialsRequest(None), 0, (None, 0, 31, None, [], None)),
    (
        scram.AlterUserScramCredentialsRequest(
            [scram.ScramDeletion("eve", 1)], [scram.ScramUpsertion("bob", 1, 4096, b"s", b"p")]
        ),
        0,
        (None, 0, [("eve", 31, None, None), ("bob", 31, None, None)], None),
    ),
    (
        a.DeleteRecordsRequest([a.DeleteRecordsTopic("t", [a.DeleteRecordsPartition(0, 1)])], 0),
        0,
        (0, [("t", [(0, -1, 29)])]),
    ),
    (later.InitProducerIdRequest("x", 1000), 1, (0, 53, -1, -1)),
    (t.AddPartitionsToTxnRequest("x", 1, 0, [t.TxnTopic("t", [0])]), 0, (0, [("t", [(0, 53)])])),
    (t.AddOffsetsToTxnRequest("x", 1, 0, "g"), 0, (0, 53)),
    (t.EndTxnRequest("x", 1, 0, True), 0, (0, 53)),
    (
        t.WriteTxnMarkersRequest([t.TxnMarker(1, 0, True, [t.MarkedTopic("t", [0, 1])], 0)]),
        0,
        ([(1, [("t", [(0, 31), (1, 31)])])],),
    ),
    (
        t.TxnOffsetCommitRequest(
            "x", "g", 1, 0, [t.TxnOffsetCommitTopic("t", [t.TxnOffsetCommitPartition(0, 5, "")])]
        ),
        0,
        (0, [("t", [(0, 53)])]),
    ),
]


@pytest.mark.scenario("security-28")
@pytest.mark.parametrize(("request_", "version", "answer"), LATER)
def test_28_later_requests_are_refused(
    later_guarded: Guarded, request_: Any, version: int, answer: Any
) -> None:
    before = dict(later_guarded.rig.zookeeper.nodes)
    found = later_guarded.rig.call(request_, sent_in=version)
    assert found == answer
    assert later_guarded.rig.zookeeper.nodes == before


@pytest.mark.scenario("security-28")
def test_settings_of_topics_and_brokers(guarded_rig: Guarded) -> None:
    rig = guarded_rig.rig
    asked = [
        a.DescribedResource(a.TOPIC_RESOURCE, "t", None),
        a.DescribedResource(a.BROKER_RESOURCE, "1", None),
        a.DescribedResource(7, "x", None),
    ]
    answer = rig.call(a.DescribeConfigsRequest(asked))
    assert [each.error for each in answer.resources] == [TOPIC_CODE, CLUSTER_CODE, CLUSTER_CODE]
    changed = [a.AlteredResource(a.TOPIC_RESOURCE, "t", [])]
    answer = rig.call(a.AlterConfigsRequest(changed, False))
    assert [each.error for each in answer.resources] == [TOPIC_CODE]
    more = a.CreatePartitionsRequest([a.MorePartitions("t", 5, None)], 0, False)
    assert [each.error for each in rig.call(more).topics] == [TOPIC_CODE]
    guarded_rig.allow(CLUSTER, Operation.ALTER_CONFIGS)
    answer = rig.call(a.DescribeConfigsRequest(asked))
    assert [each.error for each in answer.resources] == [0, LaterCode.INVALID_REQUEST, TOPIC_CODE]


def test_groups_are_listed_to_those_who_may_describe_them(later_guarded: Guarded) -> None:
    groups = later_guarded.rig.members.offsets
    later_guarded.allow(Resource(GROUP, "mine"), READ)
    for name in ("mine", "yours"):
        groups.groups_with_offsets()  # none yet
        later_guarded.rig.groups.groups[name] = _Group(name)  # type: ignore[assignment]
    answer = later_guarded.rig.call(g.ListGroupsRequest(), sent_in=0)
    assert [each.group for each in answer.groups] == ["mine"]
    later_guarded.allow(CLUSTER, DESCRIBE)
    answer = later_guarded.rig.call(g.ListGroupsRequest(), sent_in=0)
    assert [each.group for each in answer.groups] == ["mine", "yours"]


class _Group:
    def __init__(self, name: str) -> None:
        self.id = name
        self.protocol_type = "consumer"


def test_who_may_write_somewhere_gets_a_producer_id(later_guarded: Guarded) -> None:
    request = later.InitProducerIdRequest(None, 0)
    later_guarded.allow(Resource(TOPIC, "p", PatternType.PREFIXED), WRITE)
    assert later_guarded.rig.call(request, sent_in=0).error == 0


def test_lists_of_all_do_not_fill_the_audit_log(
    guarded_rig: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafka.authorizer.logger")
    guarded_rig.rig.call(s.MetadataRequest([]))
    assert [each for each in caplog.records if each.name == "kafka.authorizer.logger"] == []
    guarded_rig.rig.call(s.MetadataRequest(["t"]))
    (line,) = [each for each in caplog.records if each.name == "kafka.authorizer.logger"]
    assert "Operation = Describe" in line.message and "request = Metadata " in line.message


def test_a_super_user_is_served_as_without_an_authorizer(guarded_rig: Guarded) -> None:
    guarded_rig.peer.principal = ADMIN
    rig = guarded_rig.rig
    rig.append("x")
    assert texts(rig.fetch(("t", 0, 0, 1000))[("t", 0)][2]) == ["x"]
    assert topics_of(rig.call(s.MetadataRequest([]))) == {"t": 0, "u": 0}
