"""kafka08.lag.exposition."""

from __future__ import annotations

from prometheus_client.exposition import choose_encoder
from prometheus_client.parser import text_string_to_metric_families

from kafka08.common import Broker, TopicPartition
from kafka08.lag.collector import GroupLag, Lags, LogState, PartitionLag
from kafka08.lag.exposition import families
from kafka08.metrics.exposition import texts

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ODD = 'a "quoted" \\ group\n{é}'


def lags() -> Lags:
    behind = PartitionLag(40, 100, 60, 12.5, False, "WARN", False, 5000)
    unknown = PartitionLag(10, 12, 2, None, False, "OK", False, 5000)
    return Lags(
        9000,
        (Broker(0, "h", 9092),),
        {T0: LogState(0, (0, 1), (0,), 5, 100), T1: LogState(-1, (1,), (), None, None)},
        {
            "g": GroupLag(("zookeeper", "kafka"), 2, {T0: behind, T1: unknown}),
            ODD: GroupLag(("kafka",), 0, {}),
        },
        True,
    )


def samples() -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = b"".join(texts(families(lags()), choose_encoder("")[0])).decode()
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def test_names_and_labels_are_those_of_kafka_exporter() -> None:
    found = samples()
    group = (("consumergroup", "g"), ("partition", "0"), ("topic", "t"))
    by_topic = (("consumergroup", "g"), ("topic", "t"))
    log = (("partition", "0"), ("topic", "t"))
    assert found["kafka_consumergroup_lag", group] == 60
    assert found["kafka_consumergroup_current_offset", group] == 40
    assert found["kafka_consumergroup_lag_sum", by_topic] == 62
    assert found["kafka_consumergroup_current_offset_sum", by_topic] == 50
    assert found["kafka_consumergroup_members", (("consumergroup", "g"),)] == 2
    assert found["kafka_topic_partition_current_offset", log] == 100
    assert found["kafka_topic_partition_oldest_offset", log] == 5
    assert found["kafka_topic_partition_leader", log] == 0
    assert found["kafka_topic_partition_replicas", log] == 2
    assert found["kafka_topic_partition_in_sync_replica", log] == 1
    assert found["kafka_topic_partition_leader_is_preferred", log] == 1
    assert found["kafka_topic_partition_under_replicated_partition", log] == 1
    assert found["kafka_topic_partitions", (("topic", "t"),)] == 2


def test_names_of_our_own() -> None:
    found = samples()
    group = (("consumergroup", "g"), ("partition", "0"), ("topic", "t"))
    assert found["kafka_consumergroup_lag_seconds", group] == 12.5
    assert found["kafka_consumergroup_status", group] == 1
    info = (("consumergroup", "g"), ("storage", "zookeeper+kafka"))
    assert found["kafka_consumergroup_info", info] == 1


def test_unknown_figures_are_left_out() -> None:
    found = samples()
    group = (("consumergroup", "g"), ("partition", "1"), ("topic", "t"))
    log = (("partition", "1"), ("topic", "t"))
    assert ("kafka_consumergroup_lag_seconds", group) not in found
    assert ("kafka_topic_partition_current_offset", log) not in found


def test_any_name_of_a_group_comes_back() -> None:
    assert ("kafka_consumergroup_members", (("consumergroup", ODD),)) in samples()
