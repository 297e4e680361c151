"""kafka08.lag.commits."""

from __future__ import annotations

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.common import OFFSETS_TOPIC, Broker, TopicPartition
from kafka08.groups.records import (
    Committed,
    GroupPartition,
    GroupRecord,
    MemberRecord,
    encode_group,
    encode_group_key,
    encode_key,
    encode_value,
)
from kafka08.lag.commits import OffsetsTopic
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

LOG = TopicPartition(OFFSETS_TOPIC, 0)
TP = TopicPartition("t", 0)
KEY = encode_key(GroupPartition("g", "t", 0))


class Scene:
    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.cluster.create(OFFSETS_TOPIC, 2)
        client = ClusterClient([("b0", 9090)], runtime=FakeRuntime(), channel=self.cluster.channel)
        self.topic = OffsetsTopic(client)

    def put(self, key: bytes, value: bytes | None) -> None:
        self.cluster.append(OFFSETS_TOPIC, 0, value, key=key)  # type: ignore[arg-type]

    def commit(self, offset: int, time_ms: int = 1000) -> None:
        self.put(KEY, encode_value(Committed(offset, "", time_ms)))

    def read(self) -> bool:
        logs = [TopicPartition(OFFSETS_TOPIC, n) for n in range(2)]
        leaders = dict.fromkeys(logs, Broker(0, "b0", 9090))
        return self.topic.read(leaders, {tp: self.cluster.end(tp) for tp in logs})

    def offsets(self) -> list[int]:
        return [commit.offset for commit in self.topic.commits.get("g", {}).get(TP, ())]


def test_commits_are_read_on() -> None:
    scene = Scene()
    scene.commit(5, 1000)
    assert scene.read()
    scene.commit(9, 2000)
    scene.commit(9, 3000)
    assert scene.read()
    assert [(c.offset, c.time_ms) for c in scene.topic.commits["g"][TP]] == [
        (5, 1000),
        (9, 2000),
        (9, 3000),
    ]


@pytest.mark.scenario("ops-26")
def test_one_fetch_reads_all_partitions_of_a_leader_and_none_without_news() -> None:
    scene = Scene()
    scene.commit(5)
    scene.read()
    fetches = len(scene.cluster.sent(schemas.FetchRequest))
    assert fetches == 1
    scene.read()
    assert len(scene.cluster.sent(schemas.FetchRequest)) == fetches


def test_the_last_ten_commits_are_kept() -> None:
    scene = Scene()
    for offset in range(15):
        scene.commit(offset)
    scene.read()
    assert scene.offsets() == list(range(5, 15))


@pytest.mark.parametrize("value", [None, encode_value(Committed(-1, "", 1))])
def test_a_deleted_offset_is_gone(value: bytes | None) -> None:
    scene = Scene()
    scene.commit(5)
    scene.put(KEY, value)
    scene.read()
    assert scene.topic.commits == {}


def test_members_of_coordinated_groups() -> None:
    scene = Scene()
    member = MemberRecord("m", "c", "/h", 1000, b"", b"")
    scene.put(encode_group_key("g"), encode_group(GroupRecord("consumer", 1, "r", "m", [member])))
    scene.read()
    assert scene.topic.members == {"g": 1}
    scene.put(encode_group_key("g"), None)
    scene.read()
    assert scene.topic.members == {}


def test_records_that_are_not_understood_are_passed_over() -> None:
    scene = Scene()
    scene.put(b"\x00\x63", b"?")
    scene.put(b"", b"?")
    scene.put(KEY, b"\x00\x63")
    scene.commit(5)
    assert scene.read()
    assert scene.offsets() == [5]


def test_a_topic_created_again_is_read_from_its_start() -> None:
    scene = Scene()
    for offset in (5, 6, 7):
        scene.commit(offset)
    scene.read()
    scene.cluster.logs[LOG] = []
    scene.cluster.starts[LOG] = 10
    scene.commit(1)
    assert scene.read()
    assert scene.offsets() == [1]


def test_a_leader_that_does_not_answer_is_asked_again_in_the_next_round() -> None:
    scene = Scene()
    scene.commit(5)
    scene.cluster.failures.append(ConnectionResetError("gone"))
    assert not scene.read()
    assert scene.read()
    assert scene.offsets() == [5]


def test_a_set_larger_than_the_fetch_is_asked_for_with_more() -> None:
    scene = Scene()
    member = MemberRecord("m", "c", "/h", 1000, b"s" * 400_000, b"")
    scene.put(encode_group_key("g"), encode_group(GroupRecord("consumer", 1, "r", "m", [member])))
    scene.commit(6)
    assert scene.read()
    assert scene.topic.members == {"g": 1}
    assert scene.offsets() == [6]


def test_a_leader_whose_answer_has_nothing_new_is_not_asked_again_and_again() -> None:
    scene = Scene()
    scene.commit(5)
    empty = schemas.FetchResponse(
        [
            schemas.FetchTopicResponse(
                OFFSETS_TOPIC, [schemas.FetchPartitionResponse(0, 0, 0, memoryview(b""))]
            )
        ]
    )
    scene.cluster.script = lambda _, request: (
        empty if isinstance(request, schemas.FetchRequest) else None
    )
    assert not scene.read()
    assert len(scene.cluster.sent(schemas.FetchRequest)) == 1
