"""kafka08.lag.collector."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kafka08.client.cluster import ClusterClient
from kafka08.common import OFFSETS_TOPIC, Broker, TopicPartition
from kafka08.groups.records import (
    Committed,
    GroupPartition,
    encode_key,
    encode_value,
)
from kafka08.lag.collector import LagCollector, Lags, PartitionLag
from kafka08.lag.judgement import OK, STOP
from kafka08.message.entry import encode_entry
from kafka08.protocol import schemas
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session

TP = TopicPartition("t", 0)
BROKERS = (Broker(0, "b0", 9090), Broker(1, "b1", 9091))


class TwoBrokers:
    """Two brokers, each leading one of the two partitions of topic t."""

    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.server = FakeZooKeeper()
        self.session = Session(self.server)
        self.cluster = FakeCluster(BROKERS)
        self.cluster.create("t", 2)
        self.cluster.leaders[TopicPartition("t", 1)] = 1
        client = ClusterClient([("b0", 9090)], runtime=self.runtime, channel=self.cluster.channel)
        self.collector = LagCollector(
            client,
            self.session,  # type: ignore[arg-type]
            self.runtime.clock,
        )

    def produce(self, count: int, partition: int = 0) -> None:
        self.cluster.append("t", partition, *[b"m"] * count)

    def commit_node(self, offset: int, partition: int = 0, group: str = "g") -> None:
        self.server.put(f"/consumers/{group}/offsets/t/{partition}", b"%d" % offset)

    def commit_kafka(self, offset: int, group: str = "g") -> None:
        if OFFSETS_TOPIC not in {tp.topic for tp in self.cluster.logs}:
            self.cluster.create(OFFSETS_TOPIC, 1)
        value = encode_value(Committed(offset, "", self.runtime.clock.millis()))
        key = encode_key(GroupPartition(group, "t", 0))
        self.cluster.append(OFFSETS_TOPIC, 0, value, key=key)

    def collect(self) -> Lags:
        return self.collector.collect()

    def lag(self, tp: TopicPartition = TP) -> PartitionLag:
        return self.collect().groups["g"].partitions[tp]


@pytest.mark.scenario("ops-21")
def test_a_group_that_stopped_in_zookeeper() -> None:
    scene = TwoBrokers()
    scene.produce(100)
    scene.commit_node(40)
    found = scene.collect()
    lag = found.groups["g"].partitions[TP]
    assert (lag.offset, lag.end, lag.lag, lag.beyond) == (40, 100, 60, False)
    assert found.groups["g"].storages == ("zookeeper",)
    assert found.groups["g"].total == 60


@pytest.mark.scenario("ops-22")
def test_a_group_that_stopped_in_kafka() -> None:
    scene = TwoBrokers()
    scene.produce(100)
    scene.commit_kafka(40)
    found = scene.collect().groups["g"]
    assert found.partitions[TP].lag == 60
    assert found.storages == ("kafka",)


@pytest.mark.scenario("ops-22")
@pytest.mark.parametrize(("node", "kafka"), [(40, 55), (55, 40)])
def test_dual_commit_counts_with_the_larger_offset(node: int, kafka: int) -> None:
    scene = TwoBrokers()
    scene.produce(100)
    scene.commit_node(node)
    scene.commit_kafka(kafka)
    found = scene.collect().groups["g"]
    assert found.partitions[TP].offset == 55
    assert found.storages == ("zookeeper", "kafka")


@pytest.mark.scenario("ops-23")
def test_a_partition_without_a_commit_has_no_lag() -> None:
    scene = TwoBrokers()
    scene.produce(10, partition=1)
    scene.commit_node(0)
    assert set(scene.collect().groups["g"].partitions) == {TP}


@pytest.mark.scenario("ops-23")
def test_an_offset_beyond_the_end_is_flagged_and_never_negative() -> None:
    scene = TwoBrokers()
    scene.produce(5)
    scene.commit_node(40)
    found = scene.collect().groups["g"]
    assert (found.partitions[TP].lag, found.partitions[TP].seconds) == (0, 0.0)
    assert found.beyond


def test_offsets_of_a_topic_that_is_gone_are_left_out() -> None:
    scene = TwoBrokers()
    scene.server.put("/consumers/g/offsets/gone/0", b"5")
    assert scene.collect().groups["g"].partitions == {}


@pytest.mark.scenario("ops-24")
def test_lag_in_seconds_is_the_time_since_the_consumer_stopped() -> None:
    """Ten messages a second, a look every 5 s; the consumer stops at the end for 30 s."""
    scene = TwoBrokers()
    scene.produce(50)
    scene.commit_node(50)
    scene.collect()
    for _ in range(6):
        scene.runtime.clock.advance(5)
        scene.produce(50)
        found = scene.lag()
    assert found.lag == 300
    assert found.seconds == pytest.approx(30, abs=5)
    scene.commit_node(350)
    assert scene.lag().seconds == 0.0


def test_a_lag_older_than_the_first_look_is_at_least_that_old() -> None:
    scene = TwoBrokers()
    scene.produce(50)
    scene.commit_node(10)
    scene.collect()
    scene.runtime.clock.advance(100)
    found = scene.lag()
    assert (found.seconds, found.at_least) == (100.0, True)


@pytest.mark.scenario("ops-24")
def test_a_lag_that_is_older_is_known_where_messages_have_times() -> None:
    scene = TwoBrokers()
    scene.runtime.clock.advance(1000)
    now = scene.runtime.clock.millis()
    for offset in range(5):
        time = now - 50_000 + 10_000 * offset
        data = encode_entry(None, b"m" * 99, offset, timestamp=time)
        scene.cluster.store(TP, data)
    scene.commit_node(2)
    found = scene.lag()
    assert (found.seconds, found.at_least) == (30.0, False)
    scene.runtime.clock.advance(5)
    asked = len(scene.cluster.sent(schemas.FetchRequest))
    assert scene.lag().seconds == 35.0
    assert len(scene.cluster.sent(schemas.FetchRequest)) == asked


def test_a_consumer_that_stopped_committing() -> None:
    scene = TwoBrokers()
    scene.commit_kafka(0)
    assert scene.lag().status == OK
    scene.runtime.clock.advance(700)
    scene.collect()
    scene.produce(10)
    scene.runtime.clock.advance(10)
    assert scene.lag().status == OK
    scene.runtime.clock.advance(200)
    assert scene.collect().groups["g"].status == STOP


@pytest.mark.scenario("ops-26")
def test_one_offsets_request_for_each_leader() -> None:
    """Starts are asked for in the first round and then rarely; 500 groups add no request."""
    scene = TwoBrokers()
    for number in range(500):
        scene.commit_node(0, group=f"g{number}")
    scene.collect()
    before = len(scene.cluster.requests)
    found = scene.collect()
    assert len(found.groups) == 500
    asked = scene.cluster.requests[before:]
    assert [type(request) for _, request in asked] == [
        schemas.MetadataRequest,
        schemas.OffsetsRequest,
        schemas.OffsetsRequest,
    ]
    assert {port for port, _ in asked[1:]} == {9090, 9091}


def test_a_leader_that_does_not_answer_leaves_its_partitions_out() -> None:
    scene = TwoBrokers()
    scene.commit_node(0, partition=0)
    scene.commit_node(0, partition=1)
    scene.collect()
    scene.cluster.down = {9091}
    found = scene.collect()
    assert set(found.groups["g"].partitions) == {TP}
    assert found.groups["g"].unknown == 1
    assert found.logs[TopicPartition("t", 1)].end is None


def test_without_zookeeper_the_groups_of_the_last_round_count() -> None:
    scene = TwoBrokers()
    scene.commit_node(0)
    scene.collect()
    scene.session.down = True
    scene.produce(5)
    assert scene.lag().lag == 5


def test_members_are_counted() -> None:
    scene = TwoBrokers()
    scene.commit_node(0)
    scene.server.put("/consumers/g/ids/a", b"{}")
    assert scene.collect().groups["g"].members == 1


def test_a_new_topic_has_its_start_in_the_next_round() -> None:
    scene = TwoBrokers()
    scene.collect()
    scene.cluster.create("new", 1)
    log = scene.collect().logs[TopicPartition("new", 0)]
    assert (log.start, log.end) == (0, 0)


def test_logs_tell_starts_and_ends() -> None:
    scene = TwoBrokers()
    scene.cluster.starts[TP] = 7
    scene.produce(3)
    log = scene.collect().logs[TP]
    assert (log.start, log.end, log.leader) == (7, 10, 0)


def test_a_group_of_a_young_log_is_not_taken_for_stopped_in_between() -> None:
    """It reads a new topic to its end, and stops. Messages that come later wait for RECENT_MS
    before that counts, as in a log that has been seen for long."""
    scene = TwoBrokers()
    scene.collect()
    for offset in range(1, 11):
        scene.runtime.clock.advance(1)
        scene.produce(1)
        scene.commit_kafka(offset)
        scene.collect()
    found = []
    for seconds in range(0, 300, 10):
        scene.runtime.clock.advance(10)
        if seconds == 30:
            scene.produce(5)
        found.append(scene.lag().status)
    changes = [found[0], *(now for was, now in pairwise(found) if was != now)]
    assert changes == [OK, STOP]
    assert found.index(STOP) == 13  # 100 s after the messages
