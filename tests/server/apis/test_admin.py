from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka08 import admin
from kafka08.admin import FIXED_PARTITIONS
from kafka08.common import Broker
from kafka08.errors import LaterCode, ProtocolError
from kafka08.protocol import admin_schemas as a
from kafka08.protocol.requests import decode_request, encode_request
from tests.protocol.values import narrowed
from tests.server.admin_support import AdminRig
from zk.errors import ZkConnectionError
from zk.locations import Location
from zk.znodes import BrokerRegistration, encode_broker

TIMEOUT = 7
GOLDEN = Path(__file__).parents[2] / "golden" / "vectors.json"


@pytest.fixture
def make_rig(tmp_path: Path) -> Callable[..., AdminRig]:
    return lambda **settings: AdminRig(tmp_path, **settings)


@pytest.fixture
def rig(make_rig: Callable[..., AdminRig]) -> AdminRig:
    return make_rig()


def new_topic(
    topic: str = "t",
    partitions: int = -1,
    factor: int = -1,
    assignment: Any = (),
    **config: str | None,
) -> a.NewTopic:
    return a.NewTopic(
        topic,
        partitions,
        factor,
        [a.ReplicaAssignment(*entry) for entry in assignment],
        [a.TopicConfigEntry(key.replace("_", "."), value) for key, value in config.items()],
    )


def create(rig: AdminRig, *new: a.NewTopic, timeout_ms: int = 1000, check: bool = False) -> Any:
    response = rig.call(a.CreateTopicsRequest(list(new), timeout_ms, check))
    return [tuple(entry) for entry in response.topics]


# --- CreateTopics


def test_a_topic_has_leaders_when_its_creation_is_answered(rig: AdminRig) -> None:
    new = new_topic("t", 3, 2, flush_ms="5", retention_ms=None)
    assert create(rig, new) == [("t", 0, None)]
    assert rig.cache.partition_count("t") == 3
    assert rig.config("t") == {"flush.ms": "5"}
    assert len(rig.runtime.slept) == 1


def test_replicas_are_in_different_units(rig: AdminRig) -> None:
    for broker_id in (3, 4):
        location = Location(unit="u")
        registration = BrokerRegistration("h", 1, formats=2, location=location)
        rig.zk.create(f"/brokers/ids/{broker_id}", encode_broker(registration))
        rig.brokers.append(Broker(broker_id, "h", 9090 + broker_id))
    assert create(rig, new_topic("t", 12, 2)) == [("t", 0, None)]
    assert grow(rig, "t", 36) == (0, None)
    assigned = rig.assignment("t")
    assert assigned is not None and len(assigned) == 36
    assert [each for each in assigned.values() if set(each) == {3, 4}] == []
    assert len(set(map(frozenset, assigned.values()))) > 1


def test_counts_of_the_broker_and_replicas_by_hand(rig: AdminRig) -> None:
    by_hand = new_topic("b", assignment=[(1, [2]), (0, [1])])
    assert create(rig, new_topic("a"), by_hand) == [("a", 0, None), ("b", 0, None)]
    assert {p: len(replicas) for p, replicas in (rig.assignment("a") or {}).items()} == {0: 1, 1: 1}
    assert rig.assignment("b") == {0: (1,), 1: (2,)}


@pytest.mark.parametrize(
    ("new", "code", "text"),
    [
        (new_topic("old"), LaterCode.TOPIC_ALREADY_EXISTS, 'Topic "old" already exists.'),
        (new_topic("a b"), 17, "is illegal, contains a character other than"),
        (new_topic(partitions=0), LaterCode.INVALID_PARTITIONS, "partitions must be larger than 0"),
        (
            new_topic(factor=3),
            LaterCode.INVALID_REPLICATION_FACTOR,
            "factor: 3 larger than available",
        ),
        (new_topic(flush_ms="x"), LaterCode.INVALID_CONFIG, 'For input string: "x"'),
        (new_topic(no_such="1"), LaterCode.INVALID_CONFIG, 'Unknown configuration "no.such"'),
        (
            new_topic(assignment=[(0, [1, 1])]),
            LaterCode.INVALID_REPLICA_ASSIGNMENT,
            "Duplicate replica",
        ),
        (new_topic(assignment=[(1, [1])]), LaterCode.INVALID_REPLICA_ASSIGNMENT, "numbered from 0"),
        (new_topic(partitions=1, assignment=[(0, [1])]), LaterCode.INVALID_REQUEST, "not both"),
    ],
)
@pytest.mark.parametrize("check", [False, True])
def test_refused_topics(rig: AdminRig, new: a.NewTopic, code: int, text: str, check: bool) -> None:
    rig.create("old", [1])
    [(topic, found, message)] = create(rig, new, check=check)
    assert (topic, found) == (new.topic, code)
    assert text in message
    assert admin.list_topics(rig.zk) == ["old"]
    assert rig.runtime.slept == []


def test_one_refused_topic_does_not_stop_the_others(rig: AdminRig) -> None:
    outcomes = create(rig, new_topic("t"), new_topic("."), new_topic("t"), new_topic("u"))
    assert [(topic, code) for topic, code, _ in outcomes] == [
        ("t", LaterCode.INVALID_REQUEST),
        (".", 17),
        ("u", 0),
    ]


def test_checking_creates_nothing(rig: AdminRig) -> None:
    assert create(rig, new_topic(), check=True) == [("t", 0, None)]
    assert admin.list_topics(rig.zk) == []


def test_version_0_has_codes_only(rig: AdminRig) -> None:
    request = a.CreateTopicsRequestV0([new_topic("t"), new_topic(".")], 1000)
    assert rig.call(request) == ([("t", 0), (".", 17)],)


@pytest.mark.parametrize(("timeout_ms", "sleeps"), [(0, 0), (-1, 0), (100, 2)])
def test_a_controller_that_does_not_act_in_time(
    rig: AdminRig, timeout_ms: int, sleeps: int
) -> None:
    rig.controller_works = False
    [(_, code, text)] = create(rig, new_topic(), timeout_ms=timeout_ms)
    assert (code, text) == (TIMEOUT, "The change was accepted, but is not in effect yet")
    assert len(rig.runtime.slept) == sleeps
    assert admin.list_topics(rig.zk) == ["t"]


def test_zookeeper_fails(rig: AdminRig, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> Any:
        raise ZkConnectionError("gone")

    monkeypatch.setattr(rig.zk, "children", fail)
    assert create(rig, new_topic()) == [("t", -1, "gone")]


# --- DeleteTopics


def delete(rig: AdminRig, *topics: str, timeout_ms: int = 1000) -> Any:
    return rig.call(a.DeleteTopicsRequest(list(topics), timeout_ms)).topics


def test_a_topic_is_gone_when_its_deletion_is_answered(rig: AdminRig) -> None:
    rig.create("t", [1])
    rig.create("u", [1])
    assert delete(rig, "t", "no") == [("t", 0), ("no", 3)]
    assert admin.list_topics(rig.zk) == ["u"]
    assert "t" not in rig.cache


def test_deleting_twice_is_deleting(rig: AdminRig) -> None:
    rig.create("t", [1])
    rig.controller_works = False
    assert delete(rig, "t", timeout_ms=0) == [("t", TIMEOUT)]
    rig.controller_works = True
    assert delete(rig, "t") == [("t", 0)]


def test_nothing_is_marked_where_deletion_is_off(make_rig: Callable[..., AdminRig]) -> None:
    rig = make_rig(delete_topic_enable="false")
    rig.create("t", [1])
    assert delete(rig, "t") == [("t", LaterCode.INVALID_REQUEST)]
    assert not admin.is_marked_for_deletion(rig.zk, "t")


@pytest.mark.parametrize("version", range(4))
def test_later_versions_name_the_reason_why_nothing_is_deleted(
    make_rig: Callable[..., AdminRig], version: int
) -> None:
    rig = make_rig(later=True, delete_topic_enable="false")
    code = LaterCode.INVALID_REQUEST if version < 3 else LaterCode.TOPIC_DELETION_DISABLED
    assert rig.call(a.DeleteTopicsRequest(["t"], 0), version).topics == [("t", code)]


# --- DescribeConfigs, AlterConfigs


def describe(rig: AdminRig, topic: str, *names: str, kind: int = a.TOPIC_RESOURCE) -> Any:
    request = a.DescribeConfigsRequest([a.DescribedResource(kind, topic, list(names))])
    [resource] = rig.call(request).resources
    assert resource[2:4] == (kind, topic)
    return resource


def test_settings_of_the_topic_and_of_the_broker(make_rig: Callable[..., AdminRig]) -> None:
    rig = make_rig(min_insync_replicas=2)
    rig.create("t", [1], flush_ms="5")
    entries = {entry.name: entry for entry in describe(rig, "t").entries}
    assert entries["flush.ms"] == ("flush.ms", "5", False, False, False)
    assert entries["min.insync.replicas"] == ("min.insync.replicas", "2", False, True, False)
    assert entries["unclean.leader.election.enable"].value == "true"
    assert len(entries) > 15
    assert [entry.name for entry in describe(rig, "t", "flush.ms").entries] == ["flush.ms"]


def test_what_cannot_be_described(rig: AdminRig) -> None:
    assert describe(rig, "no")[:2] == (3, "Topic no does not exist")
    assert describe(rig, "t", kind=3)[:2] == (
        LaterCode.INVALID_REQUEST,
        "Only topics and brokers have settings",
    )
    assert describe(rig, "7", kind=a.BROKER_RESOURCE)[:2] == (
        LaterCode.INVALID_REQUEST,
        f"Unexpected broker id, expected {rig.broker_id} or empty string, but received 7",
    )
    assert rig.call(a.DescribeConfigsRequest([])) == (0, [])


@pytest.mark.scenario("modern-49")
def test_settings_of_the_broker(make_rig: Callable[..., AdminRig]) -> None:
    rig = make_rig(min_insync_replicas=2)
    asked = str(rig.broker_id)
    entries = {e.name: e for e in describe(rig, asked, kind=a.BROKER_RESOURCE).entries}
    assert entries["min.insync.replicas"].value == "2"
    changeable = {name for name, entry in entries.items() if not entry.read_only}
    assert changeable == {f"{side}.replication.throttled.rate" for side in ("leader", "follower")}
    found = describe(rig, asked, "broker.id", "x", kind=a.BROKER_RESOURCE).entries
    assert [(entry.name, entry.value) for entry in found] == [("broker.id", asked)]
    assert describe(rig, "", kind=a.BROKER_RESOURCE)[:2] == (0, None)


def alter(
    rig: AdminRig, topic: str, check: bool = False, kind: int = 2, **config: str
) -> tuple[int, str]:
    entries = [a.TopicConfigEntry(key.replace("_", "."), value) for key, value in config.items()]
    request = a.AlterConfigsRequest([a.AlteredResource(kind, topic, entries)], check)
    [(code, text, *_)] = rig.call(request).resources
    return code, text


def test_altering_replaces_all_settings_and_tells_the_brokers(rig: AdminRig) -> None:
    rig.create("t", [1], flush_ms="5")
    assert alter(rig, "t", check=True, retention_ms="9") == (0, None)
    assert rig.config("t") == {"flush.ms": "5"}
    assert alter(rig, "t", retention_ms="9") == (0, None)
    assert rig.config("t") == {"retention.ms": "9"}
    assert len(rig.zk.children("/config/changes")) == 1


def test_what_cannot_be_altered(rig: AdminRig) -> None:
    for check in (False, True):
        assert alter(rig, "no", check, flush_ms="1") == (3, 'Topic "no" does not exist.')
    assert alter(rig, "no", flush_ms="x") == (LaterCode.INVALID_CONFIG, 'For input string: "x"')
    assert alter(rig, "7", kind=4) == (
        LaterCode.INVALID_REQUEST,
        f"Unexpected broker id, expected {rig.broker_id} or empty string, but received 7",
    )
    assert alter(rig, "t", kind=3) == (
        LaterCode.INVALID_REQUEST,
        "Only topics and brokers have settings",
    )


# --- CreatePartitions


def grow(
    rig: AdminRig, topic: str, count: int, *replicas: list[int], check: bool = False
) -> tuple[int, str]:
    more = a.MorePartitions(topic, count, list(replicas))
    [(_, code, text)] = rig.call(a.CreatePartitionsRequest([more], 1000, check)).topics
    return code, text


def test_partitions_have_leaders_when_they_are_answered(rig: AdminRig) -> None:
    rig.create("t", [1])
    assert grow(rig, "t", 2, check=True) == (0, None)
    assert rig.assignment("t") == {0: (1,)}
    assert grow(rig, "t", 3, [2], [1]) == (0, None)
    assert rig.assignment("t") == {0: (1,), 1: (2,), 2: (1,)}
    assert grow(rig, "t", 4) == (0, None)
    assert rig.cache.partition_count("t") == 4


def test_what_cannot_grow(rig: AdminRig) -> None:
    rig.create("t", [1])
    assert grow(rig, "t", 1)[0] == LaterCode.INVALID_PARTITIONS
    assert grow(rig, "no", 2) == (3, "The topic no does not exist")
    assert grow(rig, "t", 3, [1])[0] == LaterCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(rig, "t", 2, [1, 2])[0] == LaterCode.INVALID_REPLICA_ASSIGNMENT
    assert grow(rig, "t", 2, [9])[0] == LaterCode.INVALID_REPLICA_ASSIGNMENT
    for topic, refusal in FIXED_PARTITIONS.items():
        rig.create(topic, [1])
        assert grow(rig, topic, 9) == (LaterCode.INVALID_PARTITIONS, refusal)
    assert rig.assignment("t") == {0: (1,)}


# --- all of them


def test_an_unexpected_failure_is_still_answered(rig: AdminRig) -> None:
    resource = a.AlteredResource(2, "t", [])
    for handler, request, expected in [
        (19, a.CreateTopicsRequest([new_topic()], 0, False), ([("t", -1, None)],)),
        (19, a.CreateTopicsRequestV0([new_topic()], 0), ([("t", -1)],)),
        (20, a.DeleteTopicsRequest(["t"], 0), ([("t", -1)],)),
        (32, a.DescribeConfigsRequest([a.DescribedResource(2, "t", [])]),
         (0, [(-1, None, 2, "t", [])])),
        (33, a.AlterConfigsRequest([resource], False), (0, [(-1, None, 2, "t")])),
        (37, a.CreatePartitionsRequest([a.MorePartitions("t", 2, [])], 0, False),
         (0, [("t", -1, None)])),
    ]:  # fmt: skip
        header = decode_request(memoryview(b"".join(encode_request(request, 1)))[4:])[0]
        answer = rig.dispatcher._handlers[handler].failure(header, request, -1)
        assert narrowed(answer, header.api_version) == expected


@pytest.mark.parametrize(("key", "version"), [(19, 2), (20, 1), (32, 1), (33, 1), (37, 1)])
def test_other_versions_close_the_connection(rig: AdminRig, key: int, version: int) -> None:
    frame = struct.pack(">hhih", key, version, 1, 0) + bytes(20)
    with pytest.raises(ProtocolError, match=f"Version {version} is invalid"):
        rig.dispatcher.handle(memoryview(frame), "127.0.0.1")


def test_what_clients_probe_with_still_closes_the_connection(rig: AdminRig) -> None:
    vectors = json.loads(GOLDEN.read_text(encoding="utf-8"))["vectors"]
    probes = [vector for vector in vectors if vector["name"].endswith("_unknown_key")]
    assert {vector["api_key"] for vector in probes} == {16, 18}
    for vector in probes:
        with pytest.raises(ProtocolError, match="Wrong request type"):
            rig.dispatcher.handle(memoryview(bytes.fromhex(vector["hex"]))[4:], "127.0.0.1")
