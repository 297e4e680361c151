"""The metrics of high-level consumers."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from kafka08.metrics.clients import Client, ClientCollector
from kafka08.metrics.meters import TICK_SECONDS
from tests.consumer.group_world import ConnectorMember, GroupWorld


def test_metrics(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"bb", b"ccc")
    member = ConnectorMember(world, offsets_storage="kafka").join()
    numbers = member.connector.metrics()
    assert numbers["OwnedPartitionsCount"] == 2
    assert numbers["RebalanceRateAndTime.Count"] == 1
    assert (numbers["MaxLag"], numbers["ConsumerLag.t.0"]) == (-1, -1)
    member.fetch()
    assert member.connector.metrics()["FetchQueueSize"] == 1
    assert len(member.read(maximum=2)) == 2
    assert member.connector.commit_offsets()
    numbers = member.connector.metrics()
    assert numbers["MessagesPerSec.Count"] == 2
    assert numbers["BytesPerSec.Count"] == 3 * 26 + 6
    assert numbers["ConsumerLag.t.0"] == numbers["MaxLag"] == 0
    # Both partitions have a position, the empty one's is 0.
    assert numbers["KafkaCommitsPerSec.Count"] == numbers["ZooKeeperCommitsPerSec.Count"] == 2
    world.cluster.append("t", 0, b"d")
    assert member.connector.commit_offsets()
    numbers = member.connector.metrics()
    assert numbers["KafkaCommitsPerSec.Count"] == 4
    assert numbers["ZooKeeperCommitsPerSec.Count"] == 2


@pytest.mark.scenario("ops-19")
def test_series_for_prometheus(world: GroupWorld) -> None:
    world.cluster.append("t", 0, b"a", b"bb", b"ccc")
    member = ConnectorMember(world, client_id="me").join()
    assert value_of(member.connector, "kafka_server_fetcherlagmetrics_consumerlag") is None
    member.fetch()
    assert len(member.read(maximum=2)) == 2

    def value(name: str, **labels: str) -> float | None:
        return value_of(member.connector, f"kafka_consumer_{name}", clientId="me", **labels)

    messages = "consumertopicmetrics_messages_total"
    assert value(messages) == value(messages, topic="t") == 2
    bytes_ = "consumertopicmetrics_bytes_total"
    assert value(bytes_) == value(bytes_, topic="t") == 3 * 26 + 6
    assert value("consumerfetchermanager_maxlag") == 0
    world.runtime.clock.advance(TICK_SECONDS)  # rates are those of the last ticks
    rate = value("consumerfetchermanager_minfetchrate")
    assert rate is not None and rate > 0
    owned = "zookeeperconsumerconnector_ownedpartitionscount"
    assert value(owned, groupId="g") == value(owned, groupId="g", topic="t") == 2
    assert value("zookeeperconsumerconnector_rebalancerateandtime_count") == 1
    assert value("zookeeperconsumerconnector_kafkacommits_total") == 0
    fetches = "fetchrequestandresponsemetrics_fetchresponsesize_count"
    count = value(fetches)
    assert count and count == value(fetches, brokerHost="b0", brokerPort="9090")
    lag = "kafka_server_fetcherlagmetrics_consumerlag"
    tags = {"clientId": "me", "topic": "t", "partition": "0"}
    assert value_of(member.connector, lag, **tags) == 0
    requests = "kafka_server_fetcherstats_requests_total"
    assert value_of(member.connector, requests, clientId="me", broker="b0:9090") == count


def value_of(client: Client, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(ClientCollector(client))
    return registry.get_sample_value(name, labels)
