"""kafka08.console.exposition."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tests.console.scene import ConsoleScene


def scraped(scene: ConsoleScene) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    answer = scene.client.get("/metrics")
    assert answer.status_code == 200
    return {
        (sample.name.removeprefix("kafka_"), frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_brokers_are_counted_while_none_answers() -> None:
    """Otherwise the alerts of a cluster end when it dies."""
    scene, none = ConsoleScene(), frozenset[tuple[str, str]]()
    scene.topic("t", [1, 2])
    assert scene.client.get("/metrics").status_code == 503
    scene.look()
    found = scraped(scene)
    assert (found["brokers", none], found["console_lag_collected", none]) == (2, 1)
    up = {labels: value for (name, labels), value in found.items() if name == "broker_up"}
    assert sorted(up.values()) == [1, 1]
    assert {name for name, _ in found} >= {"broker_info", "topic_partition_leader"}
    scene.cluster.down = {9091, 9092}
    for id_ in (1, 2):
        del scene.server.nodes[f"/brokers/ids/{id_}"]
    scene.look()
    found = scraped(scene)
    assert (found["brokers", none], found["console_lag_collected", none]) == (0, 0)
    assert found["console_cluster_in_sight", none] == 1
    gone = {labels: value for (name, labels), value in found.items() if name == "broker_up"}
    assert gone == dict.fromkeys(up, 0)
    assert not {name for name, _ in found} & {"broker_info", "topic_partition_leader"}


def test_without_zookeeper_only_that_is_known() -> None:
    scene = ConsoleScene()
    scene.look()
    scene.session.down = True
    scene.look()
    found = scraped(scene)
    assert found["console_cluster_in_sight", frozenset()] == 0
    assert not any(name in ("brokers", "broker_up") for name, _ in found)
