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
from kafka08.lag.commits import KafkaCommits, ZooKeeperCommits
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from zk.errors import ZkConnectionError

LOG = TopicPartition(OFFSETS_TOPIC, 0)
TP = TopicPartition("t", 0)
KEY = encode_key(GroupPartition("g", "t", 0))


class OffsetsLog:
    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.cluster.create(OFFSETS_TOPIC, 2)
        client = ClusterClient([("b0", 9090)], runtime=FakeRuntime(), channel=self.cluster.channel)
        self.topic = KafkaCommits(client)

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
    log = OffsetsLog()
    log.commit(5, 1000)
    assert log.read()
    log.commit(9, 2000)
    log.commit(9, 3000)
    assert log.read()
    assert [(c.offset, c.time_ms) for c in log.topic.commits["g"][TP]] == [
        (5, 1000),
        (9, 2000),
        (9, 3000),
    ]


@pytest.mark.scenario("ops-26")
def test_one_fetch_reads_all_partitions_of_a_leader_and_none_without_news() -> None:
    log = OffsetsLog()
    log.commit(5)
    log.read()
    fetches = len(log.cluster.sent(schemas.FetchRequest))
    assert fetches == 1
    log.read()
    assert len(log.cluster.sent(schemas.FetchRequest)) == fetches


def test_the_last_ten_commits_are_kept() -> None:
    log = OffsetsLog()
    for offset in range(15):
        log.commit(offset)
    log.read()
    assert log.offsets() == list(range(5, 15))


@pytest.mark.parametrize("value", [None, encode_value(Committed(-1, "", 1))])
def test_a_deleted_offset_is_gone(value: bytes | None) -> None:
    log = OffsetsLog()
    log.commit(5)
    log.put(KEY, value)
    log.read()
    assert log.topic.commits == {}


def test_members_of_coordinated_groups() -> None:
    log = OffsetsLog()
    member = MemberRecord("m", "c", "/h", 1000, b"", b"")
    log.put(encode_group_key("g"), encode_group(GroupRecord("consumer", 1, "r", "m", [member])))
    log.read()
    assert log.topic.members == {"g": 1}
    log.put(encode_group_key("g"), None)
    log.read()
    assert log.topic.members == {}


def test_records_that_are_not_understood_are_passed_over() -> None:
    log = OffsetsLog()
    log.put(b"\x00\x63", b"?")
    log.put(b"", b"?")
    log.put(KEY, b"\x00\x63")
    log.commit(5)
    assert log.read()
    assert log.offsets() == [5]


@pytest.mark.parametrize("key", [KEY, encode_group_key("g")])
def test_a_group_without_a_record_that_is_understood_is_not_listed(key: bytes) -> None:
    log = OffsetsLog()
    log.put(key, b"\x00\x63")
    assert log.read()
    assert log.topic.commits == {} and log.topic.members == {}


def test_a_topic_created_again_is_read_from_its_start() -> None:
    log = OffsetsLog()
    for offset in (5, 6, 7):
        log.commit(offset)
    log.read()
    log.cluster.logs[LOG] = []
    log.cluster.starts[LOG] = 10
    log.commit(1)
    assert log.read()
    assert log.offsets() == [1]


def test_a_leader_that_does_not_answer_is_asked_again_in_the_next_round() -> None:
    log = OffsetsLog()
    log.commit(5)
    log.cluster.failures.append(ConnectionResetError("gone"))
    assert not log.read()
    assert log.read()
    assert log.offsets() == [5]


def test_a_set_larger_than_the_fetch_is_asked_for_with_more() -> None:
    log = OffsetsLog()
    member = MemberRecord("m", "c", "/h", 1000, b"s" * 400_000, b"")
    log.put(encode_group_key("g"), encode_group(GroupRecord("consumer", 1, "r", "m", [member])))
    log.commit(6)
    assert log.read()
    assert log.topic.members == {"g": 1}
    assert log.offsets() == [6]


def test_a_leader_whose_answer_has_nothing_new_is_not_asked_again_and_again() -> None:
    log = OffsetsLog()
    log.commit(5)
    empty = schemas.FetchResponse(
        [
            schemas.FetchTopicResponse(
                OFFSETS_TOPIC, [schemas.FetchPartitionResponse(0, 0, 0, memoryview(b""))]
            )
        ]
    )
    log.cluster.script = lambda _, request: (
        empty if isinstance(request, schemas.FetchRequest) else None
    )
    assert not log.read()
    assert len(log.cluster.sent(schemas.FetchRequest)) == 1


def test_commits_and_members_in_zookeeper() -> None:
    server = FakeZooKeeper()
    server.put("/consumers/g/offsets/t/0", b"40")
    server.put("/consumers/g/ids/g_host-1", b"{}")
    groups = ZooKeeperCommits(Session(server))  # type: ignore[arg-type]
    groups.read()
    server.put("/consumers/g/offsets/t/0", b"50")
    groups.read()
    groups.read()
    assert [commit.offset for commit in groups.commits["g"][TP]] == [40, 50]
    assert groups.members == {"g": 1}


def test_nodes_that_cannot_be_read_are_passed_over() -> None:
    server = FakeZooKeeper()
    server.put("/consumers/g/offsets/t/0", b"forty")
    server.put("/consumers/g/offsets/t/x", b"1")
    server.put("/consumers/g/offsets/t/1", b"-1")
    groups = ZooKeeperCommits(Session(server))  # type: ignore[arg-type]
    groups.read()
    assert groups.commits == {"g": {}}


@pytest.mark.scenario("ops-26")
def test_many_groups_take_as_many_calls_as_one() -> None:
    server = FakeZooKeeper()
    for number in range(5000):
        group, partition = divmod(number, 10)
        server.put(f"/consumers/g{group}/offsets/t/{partition}", b"1")
    session = Session(server)
    calls: list[str] = []
    session.before = lambda call, path: calls.append(call)
    groups = ZooKeeperCommits(session)  # type: ignore[arg-type]
    groups.read()
    assert len(groups.commits) == 500
    assert sum(map(len, groups.commits.values())) == 5000
    assert sorted(calls) == ["children", *["children_of_all"] * 3, "get_all"]


def test_an_outage_leaves_what_was_read() -> None:
    server = FakeZooKeeper()
    server.put("/consumers/g/offsets/t/0", b"40")
    session = Session(server)
    groups = ZooKeeperCommits(session)  # type: ignore[arg-type]
    groups.read()
    session.down = True
    with pytest.raises(ZkConnectionError):
        groups.read()
    assert groups.commits["g"][TP][-1].offset == 40
