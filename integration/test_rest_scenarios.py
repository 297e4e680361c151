"""The REST proxy by curl, and with messages at its limits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker, Process
from integration.rest_proxy import RestProxy
from integration.test_rest import BINARY_V1, create, encoded, write

LIMIT = 500_000


def proxy_of(
    broker: Broker, directory: Path, launch: Callable[[Process], None], **props: object
) -> RestProxy:
    """``props``: settings with ``__`` for dots."""
    given = {name.replace("__", "."): value for name, value in props.items()}
    proxy = RestProxy(directory, broker.zookeeper, given)
    launch(proxy)
    return proxy.start()


# --- the quick start

# Confluent's quick start of 1.0, its lines as they are but for the address and the topics' names,
# and in their style brokers, partitions and a commit.
CURL = """
curl "http://localhost:8082/brokers"
curl "http://localhost:8082/topics"
curl "http://localhost:8082/topics/test"
curl "http://localhost:8082/topics/test/partitions"
curl -X POST -H "Content-Type: application/vnd.kafka.binary.v1+json" \
    --data '{"records":[{"value":"S2Fma2E="}]}' "http://localhost:8082/topics/test"
curl -X POST -H "Content-Type: application/vnd.kafka.v1+json" \
    --data '{"name": "my_instance", "format": "binary", "auto.offset.reset": "smallest"}' \
    http://localhost:8082/consumers/my_binary_consumer
curl -X GET -H "Accept: application/vnd.kafka.binary.v1+json" \
    http://localhost:8082/consumers/my_binary_consumer/instances/my_instance/topics/test
curl -X POST http://localhost:8082/consumers/my_binary_consumer/instances/my_instance/offsets
curl -X DELETE http://localhost:8082/consumers/my_binary_consumer/instances/my_instance
curl -X POST -H "Content-Type: application/vnd.kafka.json.v1+json" \
    --data '{"records":[{"value":{"foo":"bar"}}]}' "http://localhost:8082/topics/jsontest"
curl -X POST -H "Content-Type: application/vnd.kafka.v1+json" \
    --data '{"name": "my_instance", "format": "json", "auto.offset.reset": "smallest"}' \
    http://localhost:8082/consumers/my_json_consumer
curl -X GET -H "Accept: application/vnd.kafka.json.v1+json" \
    http://localhost:8082/consumers/my_json_consumer/instances/my_instance/topics/jsontest
curl -X DELETE http://localhost:8082/consumers/my_json_consumer/instances/my_instance
"""
SHOWN = "\n%{http_code} %{content_type}\n"
PLAIN = "application/vnd.kafka.v1+json"


def test_the_quick_start_by_curl(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl on PATH")
    # A read is answered with the first message. The script reads once only.
    proxy = proxy_of(broker, tmp_path / "rest", launch, consumer__request__timeout__ms=60000)
    test, jsontest = f"curl-{broker.kind}", f"curljson-{broker.kind}"
    for topic in (test, jsontest):
        broker.create_topic(topic)
    script = CURL.replace("http://localhost:8082", proxy.url)
    script = script.replace("topics/test", f"topics/{test}")
    script = script.replace("topics/jsontest", f"topics/{jsontest}")
    (tmp_path / ".curlrc").write_text(f"silent\nshow-error\nwrite-out = {json.dumps(SHOWN)}\n")
    done = subprocess.run(
        ["sh", "-e"],
        input=script,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "HOME": str(tmp_path), "CURL_HOME": str(tmp_path)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    answers = list(zip(lines[::2], lines[1::2], strict=True))
    assert [status for _, status in answers] == [
        *[f"200 {PLAIN}"] * 6,
        f"200 {BINARY_V1}",
        f"200 {PLAIN}",
        "204 ",
        *[f"200 {PLAIN}"] * 2,
        "200 application/vnd.kafka.json.v1+json",
        "204 ",
    ]
    bodies: list[Any] = [json.loads(body) if body else None for body, _ in answers]
    brokers, topics, described, partitions, by_binary, mine, records, committed = bodies[:8]
    by_json, json_mine, json_records = bodies[9:12]
    number = broker.broker_id
    replica = {"broker": number, "leader": True, "in_sync": True}
    partition = {"partition": 0, "leader": number, "replicas": [replica]}
    assert brokers == {"brokers": [number]}
    assert {test, jsontest} <= set(topics)
    assert described == {"name": test, "configs": {}, "partitions": [partition]}
    assert partitions == [partition]
    stored = [{"partition": 0, "offset": 0, "error_code": None, "error": None}]
    assert by_binary["offsets"] == by_json["offsets"] == stored
    for made, kind in ((mine, "binary"), (json_mine, "json")):
        base_uri = f"{proxy.url}/consumers/my_{kind}_consumer/instances/my_instance"
        assert made == {"instance_id": "my_instance", "base_uri": base_uri}
    record = {"key": None, "partition": 0, "offset": 0}
    assert records == [{**record, "value": "S2Fma2E="}]
    assert committed == [{"topic": test, "partition": 0, "consumed": 0, "committed": 0}]
    assert json_records == [{**record, "value": {"foo": "bar"}}]
    assert proxy.stop() == 143


# --- large messages


def test_messages_larger_than_max_bytes_and_than_the_limit(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    topic = f"larger-{broker.kind}"
    broker.create_topic(topic, config={"max.message.bytes": 3_000_000})
    sizes = {"request__max__bytes": 8 << 20, "max__request__size": 4 << 20}
    writer = proxy_of(broker, tmp_path / "writer", launch, **sizes)
    texts = ["first", "m" * (LIMIT // 2), "x" * 2_000_000, "last"]
    for text in texts:
        write(writer, topic, text)
    limited = proxy_of(broker, tmp_path / "rest", launch, consumer__request__max__bytes=LIMIT)
    base_uri = create(limited, "larger")
    path = f"{base_uri}/topics/{topic}"
    for offset in (0, 1):
        found: list[Any] = []
        while not found:
            answered = limited.ask("GET", f"{path}?max_bytes=1000")
            assert answered.status == 200, answered
            found = answered.body
        assert [each["offset"] for each in found] == [offset]
        assert found[0]["value"] == encoded(texts[offset])
    for _ in range(3):
        answered = limited.ask("GET", path)
        assert (answered.status, answered.body["error_code"]) == (500, 50002), answered
        assert f"topic {topic} partition 0 at fetch offset 2" in answered.body["message"]
        assert "consumer.request.max.bytes" in answered.body["message"]
    committed = [{"topic": topic, "partition": 0, "consumed": 1, "committed": 1}]
    assert limited.ask("POST", f"{base_uri}/offsets").body == committed
    assert limited.ask("DELETE", base_uri).status == 204
    by_offset = f"/topics/{topic}/partitions/0/messages"
    answered = limited.ask("GET", f"{by_offset}?offset=2")
    assert (answered.status, answered.body["error_code"]) == (500, 50002)
    assert f"offset 2 of topic {topic} partition 0" in answered.body["message"]
    assert limited.ask("GET", f"{by_offset}?offset=3").body[0]["value"] == encoded("last")
    # The same group through the proxy without that limit: alone, though larger than asked for.
    base_uri = create(writer, "larger")
    found = []
    while not found:
        found = writer.ask("GET", f"{base_uri}/topics/{topic}?max_bytes=1000").body
    assert [each["offset"] for each in found] == [2]
    assert found[0]["value"] == encoded(texts[2])
    assert writer.ask("DELETE", base_uri).status == 204
    assert (writer.stop(), limited.stop()) == (143, 143)
