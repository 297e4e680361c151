"""The quick starts of API v2 and v3 of Confluent's REST proxy, as curl sends them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.harness import Broker
from integration.rest_proxy import V1, V2, Called, RestProxy, by_curl

JSON = "application/json"
JSON_V2 = "application/vnd.kafka.json.v2+json"
SCRIPT_V2 = f"""
curl URL/topics
curl URL/topics/TOPIC
curl -X POST -H "Content-Type: {JSON_V2}" \\
    -d '{{"records":[{{"value":{{"name": "testUser"}}}}]}}' URL/topics/TOPIC
curl -X POST -H "Content-Type: {V2}" -H "Accept: {V2}" \\
    -d '{{"name": "mine", "format": "json", "auto.offset.reset": "earliest"}}' URL/consumers/GROUP
curl -X POST -H "Content-Type: {V2}" -d '{{"topics":["TOPIC"]}}' \\
    URL/consumers/GROUP/instances/mine/subscription
curl -X GET -H "Accept: {JSON_V2}" URL/consumers/GROUP/instances/mine/records
curl -X DELETE -H "Accept: {V2}" URL/consumers/GROUP/instances/mine
"""
SCRIPT_V3 = f"""
curl URL/v3/clusters
curl -X POST -H "Content-Type:{JSON}" -d '{{"topic_name":"TOPIC"}}' URL/v3/clusters/CLUSTER/topics
curl URL/v3/clusters/CLUSTER/topics
curl -X POST -H "Content-Type: {JSON}" \\
    -d '{{"value":{{"type":"JSON","data":{{"name":"testUser"}}}}}}' \\
    URL/v3/clusters/CLUSTER/topics/TOPIC/records
curl -X POST -H "Content-Type: {JSON}" -H "Transfer-Encoding: chunked" \\
    -d '{{"value":{{"type":"JSON","data":"ONE"}}}} {{"value":{{"type":"JSON","data":"TWO"}}}}' \\
    URL/v3/clusters/CLUSTER/topics/TOPIC/records
"""


@pytest.fixture(scope="module")
def proxy(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestProxy]:
    """One whose reads wait for a first message: the quick starts read once."""
    props = {"consumer.request.timeout.ms": 60000}
    directory = tmp_path_factory.mktemp(f"rest-{broker.kind}")
    started = RestProxy(directory, broker.zookeeper, props).start()
    yield started
    assert started.stop() == 143
    assert " ERROR " not in started.log


def calls(script: str, proxy: RestProxy, directory: Path, **names: str) -> list[Called]:
    for name, value in {"URL": proxy.url, **names}.items():
        script = script.replace(name, value)
    return by_curl(script, directory)


def test_the_quick_start_of_v2(broker: Broker, proxy: RestProxy, tmp_path: Path) -> None:
    topic, group = f"v2-{broker.kind}", f"v2-group-{broker.kind}"
    broker.create_topic(topic)
    found = calls(SCRIPT_V2, proxy, tmp_path, TOPIC=topic, GROUP=group)
    shown = [each.shown for each in found]
    # Without a version in its type or in Accept a request is answered as v1.
    assert shown == [*[f"200 {V1}"] * 2, *[f"200 {V2}"] * 2, "204 ", f"200 {JSON_V2}", "204 "]
    topics, described, produced, created, _, records, _ = [each.body for each in found]
    assert topic in topics
    assert described["partitions"][0]["leader"] == broker.broker_id
    stored = {"partition": 0, "offset": 0, "error_code": None, "error": None}
    assert produced == {"offsets": [stored], "key_schema_id": None, "value_schema_id": None}
    base_uri = f"{proxy.url}/consumers/{group}/instances/mine"
    assert created == {"instance_id": "mine", "base_uri": base_uri}
    record = {"topic": topic, "key": None, "value": {"name": "testUser"}}
    assert records == [{**record, "partition": 0, "offset": 0}]


def test_the_quick_start_of_v3(broker: Broker, proxy: RestProxy, tmp_path: Path) -> None:
    topic = f"v3-{broker.kind}"
    [cluster] = proxy.ask("GET", "/v3/clusters").body["data"]
    found = calls(SCRIPT_V3, proxy, tmp_path, TOPIC=topic, CLUSTER=cluster["cluster_id"])
    statuses = [each.shown for each in found]
    assert statuses == [f"{status} {JSON}" for status in (200, 201, 200, 200, 200)]
    clusters, created, topics, *produced = [each.bodies for each in found]
    assert clusters[0]["data"] == [cluster]
    assert (created[0]["topic_name"], created[0]["partitions_count"]) == (topic, 1)
    assert created[0] in topics[0]["data"]
    answers = [answer for body in produced for answer in body]
    assert [(each["error_code"], each["offset"]) for each in answers] == [
        (200, 0),
        (200, 1),
        (200, 2),
    ]
    assert [each["value"]["size"] for each in answers] == [19, 5, 5]
