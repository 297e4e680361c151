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
