from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from kafka08.metrics.exposition import Exposition
from kafka08.metrics.meters import Meter
from kafka08.metrics.names import TOPICS
from kafka08.metrics.registry import Registry
from kafka08.server.monitoring.health import Health
from kafka08.server.monitoring.http_endpoints import Endpoints
from tests.fakes.runtime import FakeRuntime

pytest.importorskip("prometheus_client")
NAME = b"kafka_server_brokertopicmetrics_bytesin_total"


class Site:
    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.registry = Registry(self.runtime)
        self.health = Health()
        self.meter = Meter()
        self.meter.mark(3)
        self.registry.add(TOPICS["bytes_in"], lambda: [(("",), self.meter), (("t",), self.meter)])
        self.application = Endpoints(
            self.runtime,
            self.registry,
            self.health,
            Exposition(self.runtime, self.registry),
            lambda: b"{}\n",
        )

    def get(
        self, path: str, method: str = "GET", query: str = "", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        answered: list[Any] = []
        environ = {"PATH_INFO": path, "REQUEST_METHOD": method, "QUERY_STRING": query, **headers}
        body = b"".join(self.application(environ, lambda *given: answered.extend(given)))
        status, fields = answered
        return int(status.split()[0]), dict(fields), body


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.mark.scenario("ops-15")
def test_metrics_in_both_formats(site: Site) -> None:
    code, headers, body = site.get("/metrics")
    assert (code, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert NAME + b'{topic="t"} 3.0\n' in body
    assert NAME + b" 3.0\n" in body
    assert int(headers["Content-Length"]) == len(body)
    accept = "application/openmetrics-text; version=1.0.0,text/plain;q=0.5"
    code, headers, body = site.get("/metrics", HTTP_ACCEPT=accept)
    assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert body.endswith(b"# EOF\n")


def test_the_clients_are_json(site: Site) -> None:
    code, headers, body = site.get("/clients")
    assert (code, headers["Content-Type"], body) == (200, "application/json", b"{}\n")
    assert site.get("/clients", "POST")[0] == 405


@pytest.mark.scenario("ops-15")
@pytest.mark.parametrize(
    ("accepted", "is_zipped"),
    [("gzip", True), ("deflate, GZIP;q=0.5", True), ("gzip;q=0", False), ("br", False)],
)
def test_gzip_if_it_is_asked_for(site: Site, accepted: str, is_zipped: bool) -> None:
    plain = site.get("/metrics")[2]
    _, headers, body = site.get("/metrics", HTTP_ACCEPT_ENCODING=accepted)
    assert (headers.get("Content-Encoding") == "gzip") is is_zipped
    assert (gzip.decompress(body) if is_zipped else body) == plain


@pytest.mark.scenario("ops-15")
def test_nothing_else_is_there_and_nothing_can_be_changed(site: Site) -> None:
    assert site.get("/")[0] == site.get("/metrics/")[0] == site.get("/jmx/x")[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        code, headers, body = site.get("/metrics", method)
        assert (code, headers["Allow"], body) == (405, "GET, HEAD", b"")
    assert site.get("/metrics", "HEAD")[0] == 200


@pytest.mark.scenario("ops-18")
def test_beans_under_their_names(site: Site) -> None:
    code, _, body = site.get("/jmx", query="qry=kafka.server:type=BrokerTopicMetrics,*")
    [total, topic] = json.loads(body)["beans"]
    assert code == 200
    assert total["name"] == "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec"
    assert topic["name"] == total["name"] + ",topic=t"
    assert (topic["Count"], topic["EventType"], topic["RateUnit"]) == (3, "bytes", "SECONDS")
    assert json.loads(site.get("/jmx", query="qry=kafka.log:*")[2]) == {"beans": []}
    assert len(json.loads(site.get("/jmx")[2])["beans"]) == 2
    code, _, body = site.get("/jmx", query="qry=nonsense")
    assert (code, json.loads(body)) == (
        400,
        {"error": "not a bean's name or pattern: nonsense"},
    )


@pytest.mark.scenario("ops-20")
def test_health(site: Site) -> None:
    assert json.loads(site.get("/health/live")[2]) == {"status": "live"}
    code, _, body = site.get("/health/ready")
    assert (code, json.loads(body)) == (
        503,
        {"status": "not ready", "broker_state": 1, "reasons": ["the broker is starting"]},
    )
    site.health.runs(bool)
    code, _, body = site.get("/health/ready")
    assert (code, json.loads(body)) == (200, {"status": "ready", "broker_state": 3})
    site.health.shows("directories", list)
    site.health.add_warning(lambda: "it is Monday")
    code, _, body = site.get("/health/ready")
    details = {"warnings": ["it is Monday"], "directories": []}
    assert (code, json.loads(body)) == (200, {"status": "ready", "broker_state": 3} | details)
    site.health.add_check(lambda: "ZooKeeper is out of reach")
    assert json.loads(site.get("/health/ready")[2]) == {
        "status": "not ready",
        "broker_state": 3,
        "reasons": ["ZooKeeper is out of reach"],
        **details,
    }


@pytest.mark.scenario("ops-20")
def test_a_loop_that_comes_round_late_is_not_live(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.runtime, "sleep", lambda seconds: site.runtime.clock.advance(1.1))
    assert site.get("/health/live")[0] == 503
