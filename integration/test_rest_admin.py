"""Settings of brokers and access rules by API v3 of the REST proxy, and its OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.harness import Broker, Tools, ZooKeeper
from integration.rest_proxy import RestProxy
from integration.test_acls import PROPS, Rules
from integration.wire import wait_until

JSON = "application/json"
RATE = "leader.replication.throttled.rate"
RULE = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "PREFIXED",
    "principal": "User:anna",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}


def cluster(proxy: RestProxy) -> str:
    """The path of the cluster."""
    found = proxy.ask("GET", "/v3/clusters").body["data"][0]["cluster_id"]
    return f"/v3/clusters/{found}"


@pytest.fixture(scope="module")
def proxy(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestProxy]:
    """One for each kind of broker; it must log no error."""
    started = RestProxy(tmp_path_factory.mktemp(f"rest-{broker.kind}"), broker.zookeeper).start()
    yield started
    assert started.stop() == 143
    assert " ERROR " not in started.log


def test_settings_of_a_broker(broker: Broker, proxy: RestProxy, our_tools: Tools) -> None:
    """A change is seen by kafka-configs. A broker of 0.8.2.2 does not know the request."""
    base = cluster(proxy)
    path = f"{base}/brokers/{broker.broker_id}/configs"
    answered = proxy.ask("GET", path)
    if broker.kind != "ours":
        assert (answered.status, answered.body["error_code"]) == (400, 40002)
        assert "closed the connection" in answered.body["message"]
        assert proxy.ask("GET", f"{base}/broker-configs").status == 400
        return
    found = {each["name"]: each for each in answered.body["data"]}
    assert found["zookeeper.connect"]["value"] == broker.zookeeper
    assert proxy.ask("PUT", f"{path}/{RATE}", {"value": 7000000}, JSON).status == 204
    args = ["--zookeeper", broker.zookeeper, "--describe", "--entity-type", "brokers"]
    told = our_tools.run("kafka.admin.ConfigCommand", *args, "--entity-name", str(broker.broker_id))
    assert f"{RATE}=7000000" in told.out
    assert proxy.ask("DELETE", f"{path}/{RATE}").status == 204
    assert proxy.ask("GET", f"{path}/{RATE}").body["is_default"]
    refused = proxy.ask("PUT", f"{path}/num.partitions", {"value": 7}, JSON)
    assert (refused.status, refused.body["error_code"]) == (400, 40002)
    assert "server.properties" in refused.body["message"]


def test_a_cluster_without_an_authorizer(broker: Broker, proxy: RestProxy) -> None:
    answered = proxy.ask("GET", f"{cluster(proxy)}/acls")
    assert (answered.status, answered.body["error_code"]) == (400, 40002)


def test_the_document_is_served(proxy: RestProxy) -> None:
    answered = proxy.ask("GET", "/openapi.json")
    assert (answered.status, answered.content_type) == (200, JSON)
    assert "/v3/clusters/{cluster}/acls" in answered.body["paths"]


def test_access_rules(zookeeper: ZooKeeper, our_tools: Tools, tmp_path: Path) -> None:
    """The proxy may look at rules first, and then change them. kafka-acls shows the same."""
    rules = Rules(f"{zookeeper.connect}/acls-rest", our_tools)
    for operation in ("ClusterAction", "Describe"):
        rules.allow("--cluster", "--operation", operation)
    broker = Broker("ours", tmp_path / "broker", rules.connect, props=PROPS).start()
    proxy = RestProxy(tmp_path / "rest", rules.connect).start()
    try:
        path = f"{cluster(proxy)}/acls"
        assert len(proxy.ask("GET", path).body["data"]) == 2
        refused = proxy.ask("POST", path, RULE, JSON)
        assert (refused.status, refused.body["error_code"]) == (403, 40301)
        rules.allow("--cluster", "--operation", "Alter")
        wait_until("the right", 30, lambda: proxy.ask("POST", path, RULE, JSON).status == 201)
        assert "User:anna" in rules.ours("--list")
        [found] = proxy.ask("GET", f"{path}?principal=User:anna").body["data"]
        assert found.items() >= RULE.items()
        assert proxy.ask("DELETE", found["metadata"]["self"]).body["data"] == [found]
        assert "User:anna" not in rules.ours("--list")
    finally:
        assert proxy.stop() == 143
        broker.kill()
    assert " ERROR " not in proxy.log
