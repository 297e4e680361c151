"""kafka08.console.pages.machine."""

from __future__ import annotations

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families

from tests.console.scene import ConsoleScene


def test_metrics_in_both_formats() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.commit("g", "t", 0)
    scene.look()
    plain = scene.client.get("/metrics")
    assert "kafka_consumergroup_lag" in {f.name for f in text_string_to_metric_families(plain.text)}
    later = scene.client.get("/metrics", headers={"Accept": "application/openmetrics-text"})
    assert later.text.endswith("# EOF\n")
    assert later.text.count("# EOF") == 1
    assert "kafka_consumergroup_lag" in {family.name for family in open_metrics(later.text)}


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


def test_health() -> None:
    scene = ConsoleScene()
    assert scene.client.get("/health/live").status_code == 200
    assert scene.client.get("/health/ready").status_code == 503
    scene.look()
    answer = scene.client.get("/health/ready")
    assert (answer.status_code, answer.json) == (200, {"status": "ready"})
    scene.session.down = True
    scene.look()
    answer = scene.client.get("/health/ready")
    assert (answer.status_code, answer.json is not None) == (503, True)


def test_a_console_whose_cluster_is_dead_says_so() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1, 2])
    scene.look()

    def warnings() -> list[str]:
        scene.look()
        answer = scene.client.get("/health/ready")
        assert answer.status_code == 200 and answer.json is not None
        found: list[str] = answer.json["warnings"]
        return found

    del scene.server.nodes["/brokers/ids/2"]
    assert warnings()[0] == "brokers are down: 2"
    scene.cluster.down = {9091, 9092}
    down, silent, lag = warnings()
    assert (down, silent) == ("brokers are down: 2", "no broker answers")
    assert lag.startswith("lag cannot be collected: ")
    del scene.server.nodes["/brokers/ids/1"]
    assert warnings()[0] == "no broker is registered"


def test_files_of_pages_and_no_others() -> None:
    scene = ConsoleScene()
    assert scene.client.get("/static/console.css").mimetype == "text/css"
    assert scene.client.get("/static/console.js").mimetype == "text/javascript"
    for name in ("../main.py", "..%2fmain.py", "other.js"):
        assert scene.client.get(f"/static/{name}").status_code == 404
