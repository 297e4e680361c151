"""The REST proxy before brokers of both kinds, asked as by curl and by clients of its time."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from integration.harness import Broker, Process, Tools, ZooKeeper, zookeeper_text
from integration.rest_proxy import V1, V2, RestProxy
from integration.wire import wait_until
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.errors import ConsumerTimeoutError

BINARY_V1 = "application/vnd.kafka.binary.v1+json"
JSON_V1 = "application/vnd.kafka.json.v1+json"
SMALLEST = {"auto.offset.reset": "smallest"}
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def proxy(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestProxy]:
    """One for each kind of broker; it must log no error."""
    directory = tmp_path_factory.mktemp(f"rest-{broker.kind}")
    props = {"consumer.instance.timeout.ms": 60000, "fetch.wait.max.ms": 100}
    started = RestProxy(directory, broker.zookeeper, props).start()
    yield started
    assert started.stop() == 143
    assert " ERROR " not in started.log


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def write(proxy: RestProxy, topic: str, *values: str, partition: int = 0) -> None:
    body = {"records": [{"value": encoded(value)} for value in values]}
    path = f"/topics/{topic}/partitions/{partition}"
    answered = proxy.ask("POST", path, body, BINARY_V1)
    assert answered.status == 200, answered
    assert all(each["error_code"] is None for each in answered.body["offsets"]), answered


def read(proxy: RestProxy, base_uri: str, topic: str, count: int) -> list[str]:
    """Reads until there are ``count`` messages, for at most 30 s."""
    found: list[str] = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        answered = proxy.ask("GET", f"{base_uri}/topics/{topic}")
        assert answered.status == 200, answered
        found += [b64decode(each["value"]).decode() for each in answered.body]
    return found


def create(proxy: RestProxy, group: str, **fields: Any) -> str:
    answered = proxy.ask("POST", f"/consumers/{group}", {**SMALLEST, **fields})
    assert answered.status == 200, answered
    base_uri: str = answered.body["base_uri"]
    return base_uri


def children(zookeeper: ZooKeeper, broker: Broker, path: str) -> list[str]:
    client = zookeeper.client(f"/{broker.kind}")
    try:
        return sorted(client.get_children(path)) if client.exists(path) else []
    finally:
        client.stop()
        client.close()


@pytest.mark.scenario("ops-27")
def test_the_quick_start(broker: Broker, proxy: RestProxy) -> None:
    """The calls of Confluent's quick start of 1.0, with brokers and a type."""
    topic = f"quick-{broker.kind}"
    broker.create_topic(topic)
    assert proxy.ask("GET", "/brokers").body == {"brokers": [broker.broker_id]}
    answered = proxy.ask("GET", "/topics")
    assert topic in answered.body
    assert answered.content_type == V1
    partition = {
        "partition": 0,
        "leader": broker.broker_id,
        "replicas": [{"broker": broker.broker_id, "leader": True, "in_sync": True}],
    }
    expected = {"name": topic, "configs": {}, "partitions": [partition]}
    assert proxy.ask("GET", f"/topics/{topic}").body == expected
    assert proxy.ask("GET", f"/topics/{topic}/partitions").body == [partition]
    assert proxy.ask("GET", f"/topics/{topic}/partitions/0").body == partition

    body = {"records": [{"value": "S2Fma2E="}, {"key": "a2V5", "value": None}]}
    answered = proxy.ask("POST", f"/topics/{topic}", body, BINARY_V1)
    stored = [
        {"partition": 0, "offset": offset, "error_code": None, "error": None} for offset in (0, 1)
    ]
    assert answered.body == {"offsets": stored, "key_schema_id": None, "value_schema_id": None}
    assert answered.content_type == V1
    path = f"/topics/{topic}/partitions/0/messages"
    answered = proxy.ask("GET", f"{path}?offset=0&count=2")
    assert answered.content_type == BINARY_V1
    messages = [
        {"key": None, "value": "S2Fma2E=", "partition": 0, "offset": 0},
        {"key": "a2V5", "value": None, "partition": 0, "offset": 1},
    ]
    assert answered.body == messages
    assert proxy.ask("GET", f"{path}?offset=2").body == []
    assert proxy.ask("GET", f"{path}?offset=3").body["error_code"] == 50002

    answered = proxy.ask("POST", "/consumers/quick", {**SMALLEST, "format": "binary", "name": "me"})
    base_uri = f"{proxy.url}/consumers/quick/instances/me"
    assert answered.body == {"instance_id": "me", "base_uri": base_uri}
    answered = proxy.ask("GET", f"{base_uri}/topics/{topic}", Accept=BINARY_V1)
    assert answered.body == messages
    committed = [{"topic": topic, "partition": 0, "consumed": 1, "committed": 1}]
    assert proxy.ask("POST", f"{base_uri}/offsets").body == committed
    node = f"/consumers/quick/offsets/{topic}/0"
    assert zookeeper_text(broker.zookeeper, node) == "2"
    assert proxy.ask("DELETE", base_uri).status == 204
    assert proxy.ask("DELETE", base_uri).body["error_code"] == 40403


def test_metrics_for_prometheus(broker: Broker, proxy: RestProxy) -> None:
    name, labels = "kafka_rest_requests_total", {"endpoint": "brokers.list", "code": "200"}

    def counted() -> float:
        text = proxy.ask("GET", "/metrics").body.decode()
        samples = [
            sample
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and sample.labels.items() >= labels.items()
        ]
        return sum(sample.value for sample in samples)

    before = counted()
    proxy.ask("GET", "/brokers")
    assert counted() == before + 1


@pytest.mark.scenario("ops-27")
def test_json_records(broker: Broker, proxy: RestProxy) -> None:
    topic = f"json-{broker.kind}"
    broker.create_topic(topic)
    value = {"name": "Ö", "numbers": [1, 2.5]}
    body = {"records": [{"key": "k", "value": value}]}
    assert proxy.ask("POST", f"/topics/{topic}", body, JSON_V1).status == 200
    base_uri = create(proxy, "json", format="json")
    answered = proxy.ask("GET", f"{base_uri}/topics/{topic}", Accept=JSON_V1)
    assert answered.content_type == JSON_V1
    assert answered.body == [{"key": "k", "value": value, "partition": 0, "offset": 0}]
    assert proxy.ask("GET", f"{base_uri}/topics/{topic}", Accept=BINARY_V1).status == 406
    assert proxy.ask("DELETE", base_uri).status == 204


@pytest.mark.scenario("ops-29")
def test_keys_are_where_the_console_producer_of_java_puts_them(
    broker: Broker, proxy: RestProxy, tools: Tools
) -> None:
    topic = f"keys-{broker.kind}-{tools.kind}"
    broker.create_topic(topic, 3)
    keys = [f"key-{number}" for number in range(12)]
    lines = "".join(f"{key}\tconsole\n" for key in keys)
    args = ["--broker-list", broker.address, "--topic", topic, "--new-producer"]
    args += ["--property", "parse.key=true"]
    done = tools.run("kafka.tools.ConsoleProducer", *args, stdin=lines)
    assert done.code == 0, done.err
    body = {"records": [{"key": encoded(key), "value": encoded("rest")} for key in keys]}
    assert proxy.ask("POST", f"/topics/{topic}", body, BINARY_V1).status == 200
    partitions: dict[str, dict[str, set[int]]] = {"console": {}, "rest": {}}
    for number in range(3):
        path = f"/topics/{topic}/partitions/{number}/messages?count=1000"
        for each in proxy.ask("GET", path).body:
            key, value = (b64decode(each[name]).decode() for name in ("key", "value"))
            partitions[value].setdefault(key, set()).add(number)
    assert len(partitions["rest"]) == 12
    assert partitions["rest"] == partitions["console"]


@pytest.mark.scenario("ops-33")
def test_a_compressed_set_is_read_from_its_middle(
    broker: Broker, proxy: RestProxy, tools: Tools
) -> None:
    topic = f"gzip-{broker.kind}-{tools.kind}"
    broker.create_topic(topic)
    args = ["--broker-list", broker.address, "--topic", topic, "--compression-codec", "gzip"]
    args += ["--request-required-acks", "1"]
    lines = "".join(f"{number}\n" for number in range(20))
    done = tools.run("kafka.tools.ConsoleProducer", *args, stdin=lines)
    assert done.code == 0, done.err
    path = f"/topics/{topic}/partitions/0/messages?offset=15&count=3"
    answered = proxy.ask("GET", path)
    assert answered.status == 200, answered
    assert [each["offset"] for each in answered.body] == [15, 16, 17]


@pytest.mark.scenario("ops-34")
def test_a_group_is_shared_with_another_consumer(
    broker: Broker, proxy: RestProxy, zookeeper: ZooKeeper
) -> None:
    topic, group = f"shared-{broker.kind}", "shared"
    broker.create_topic(topic, 2)
    base_uri = create(proxy, group, id="rest", **{"auto.commit.enable": "true"})
    read(proxy, base_uri, topic, 0)
    proxy.ask("GET", f"{base_uri}/topics/{topic}")
    config = ConsumerConfig(
        group_id=group,
        zookeeper_connect=broker.zookeeper,
        consumer_id="other",
        consumer_timeout_ms=100,
        auto_offset_reset="smallest",
        rebalance_backoff_ms=500,
        rebalance_max_retries=20,
    )
    with ConsumerConnector(config) as other:
        stream = other.create_message_streams({topic: 1})[topic][0]
        owners = f"/consumers/{group}/owners/{topic}"

        def owned() -> set[str | None]:
            return {zookeeper_text(broker.zookeeper, f"{owners}/{number}") for number in (0, 1)}

        expected = {f"{group}_rest-0", f"{group}_other-0"}
        wait_until("an owner each", 30, lambda: owned() == expected)
        assert children(zookeeper, broker, f"/consumers/{group}/ids") == [
            f"{group}_other",
            f"{group}_rest",
        ]
        for number in (0, 1):
            write(proxy, topic, f"to {number}", partition=number)
        found = read(proxy, base_uri, topic, 1)
        with pytest.raises(ConsumerTimeoutError):
            while True:
                found.append(next(stream).value.decode())
        assert sorted(found) == ["to 0", "to 1"]
    assert proxy.ask("DELETE", base_uri).status == 204
    assert children(zookeeper, broker, f"/consumers/{group}/ids") == []


@pytest.mark.scenario("ops-35")
def test_messages_come_again_until_they_are_committed(broker: Broker, proxy: RestProxy) -> None:
    topic = f"again-{broker.kind}"
    broker.create_topic(topic)
    write(proxy, topic, "a", "b")
    for _ in range(2):
        base_uri = create(proxy, "again")
        assert read(proxy, base_uri, topic, 2) == ["a", "b"]
        assert proxy.ask("DELETE", base_uri).status == 204
    base_uri = create(proxy, "again")
    read(proxy, base_uri, topic, 2)
    assert proxy.ask("POST", f"{base_uri}/offsets").body[0]["committed"] == 1
    assert proxy.ask("DELETE", base_uri).status == 204
    write(proxy, topic, "c")
    base_uri = create(proxy, "again")
    assert read(proxy, base_uri, topic, 1) == ["c"]
    assert proxy.ask("DELETE", base_uri).status == 204


@pytest.mark.scenario("ops-31")
def test_large_records_alone(broker: Broker, proxy: RestProxy) -> None:
    topic = f"large-{broker.kind}"
    broker.create_topic(topic, config={"max.message.bytes": 200_000})
    large = encoded("x" * 300_000)
    records = [{"value": value} for value in (encoded("a"), large, encoded("b"))]
    answered = proxy.ask("POST", f"/topics/{topic}", {"records": records}, BINARY_V1)
    assert answered.status == 200
    first, second, third = answered.body["offsets"]
    assert (second["partition"], second["offset"], second["error_code"]) == (None, None, 50002)
    assert {first["offset"], third["offset"]} == {0, 1}


@pytest.mark.scenario("ops-32")
def test_what_does_not_exist(broker: Broker, proxy: RestProxy) -> None:
    for path, code in (
        ("/topics/none-such", 40401),
        ("/topics/none-such/partitions/0/messages", 40401),
    ):
        assert proxy.ask("GET", path).body["error_code"] == code
    topic = f"there-{broker.kind}"
    broker.create_topic(topic)
    body = {"records": [{"value": "YQ=="}]}
    path = f"/topics/{topic}/partitions/7"
    assert proxy.ask("POST", path, body).body["error_code"] == 40402
    # Asking did not create the topic, writing does.
    assert "none-such" not in proxy.ask("GET", "/topics").body
    fresh = f"fresh-{broker.kind}"
    answered = proxy.ask("POST", f"/topics/{fresh}", body)
    assert answered.body["offsets"][0]["offset"] == 0, answered


@pytest.mark.scenario("ops-42")
def test_v2_with_an_assignment(broker: Broker, proxy: RestProxy) -> None:
    topic = f"assigned-{broker.kind}"
    broker.create_topic(topic)
    write(proxy, topic, *[str(number) for number in range(30)])
    body = {"auto.offset.reset": "earliest", "auto.commit.enable": "false"}
    base = proxy.ask("POST", "/consumers/assigned", body, V2).body["base_uri"]
    one = {"topic": topic, "partition": 0}

    def post(path: str, body: Any) -> None:
        answered = proxy.ask("POST", f"{base}/{path}", body, V2)
        assert answered.status in (200, 204), answered

    def offsets() -> list[int]:
        answered = proxy.ask("GET", f"{base}/records", Accept=V2)
        assert answered.status == 200, answered
        return [each["offset"] for each in answered.body]

    post("assignments", {"partitions": [one]})
    post("offsets", {"offsets": [{**one, "offset": 20}]})
    answered = proxy.ask("GET", f"{base}/offsets", {"partitions": [one]}, V2)
    assert answered.body == {"offsets": [{**one, "offset": 21, "metadata": ""}]}
    assert offsets()[0] == 21
    post("positions", {"offsets": [{**one, "offset": 5}]})
    assert offsets()[0] == 5
    post("positions/beginning", {"partitions": [one]})
    assert offsets()[0] == 0
    post("positions/end", {"partitions": [one]})
    assert offsets() == []
    write(proxy, topic, "more")
    assert offsets() == [30]
    path = f"/topics/{topic}/partitions/0/offsets"
    expected = {"beginning_offset": 0, "end_offset": 31}
    assert proxy.ask("GET", path, Accept=V2).body == expected
    assert proxy.ask("DELETE", base).status == 204


@pytest.mark.scenario("ops-43")
def test_v2_with_a_pattern(broker: Broker, proxy: RestProxy) -> None:
    first, later = f"pattern-{broker.kind}-1", f"pattern-{broker.kind}-2"
    broker.create_topic(first)
    write(proxy, first, "a")
    base = proxy.ask("POST", "/consumers/pattern", {"auto.offset.reset": "earliest"}, V2)
    base_uri = base.body["base_uri"]
    body = {"topic_pattern": f"pattern-{broker.kind}-.*"}
    assert proxy.ask("POST", f"{base_uri}/subscription", body, V2).status == 204

    def topics(wanted: str) -> bool:
        found = proxy.ask("GET", f"{base_uri}/records", Accept=V2).body
        return wanted in {each["topic"] for each in found}

    wait_until("the first topic", 30, lambda: topics(first))
    broker.create_topic(later)
    write(proxy, later, "b")
    wait_until("the later topic", 30, lambda: topics(later))
    subscription = proxy.ask("GET", f"{base_uri}/subscription", Accept=V2).body
    assert subscription == {"topics": [first, later]}
    assert proxy.ask("DELETE", base_uri).status == 204


@pytest.mark.scenario("ops-39")
def test_long_reads_do_not_hold_up_others(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    topic = f"busy-{broker.kind}"
    broker.create_topic(topic)
    props = {"consumer.request.timeout.ms": 4000, "consumer.instances.max": 41}
    proxy = RestProxy(tmp_path / "rest", broker.zookeeper, props)
    launch(proxy)
    proxy.start()
    # A group each: members of one group would wait for each other's rebalances.
    uris = [create(proxy, f"busy-{number}") for number in range(40)]
    answers: list[int] = []

    def wait(base_uri: str) -> None:
        answers.append(proxy.ask("GET", f"{base_uri}/topics/{topic}-none").status)
        answers.append(proxy.ask("GET", f"{base_uri}/topics/{topic}").status)

    readers = [threading.Thread(target=wait, args=(base_uri,)) for base_uri in uris]
    for reader in readers:
        reader.start()
    write(proxy, topic, "a")
    for reader in readers:
        reader.join()
    assert sorted(answers) == [200] * 40 + [404] * 40
    create(proxy, "last")
    assert proxy.ask("POST", "/consumers/more").status == 429
    assert proxy.stop() == 143


@pytest.mark.scenario("ops-38", "ops-40")
def test_idle_instances_and_the_end(
    broker: Broker, zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    topic = f"idle-{broker.kind}"
    broker.create_topic(topic)
    write_to = {"records": [{"value": "YQ=="}]}
    props = {"consumer.instance.timeout.ms": 4000, "consumer.request.timeout.ms": 30000}
    proxy = RestProxy(tmp_path / "rest", broker.zookeeper, props)
    launch(proxy)
    proxy.start()
    assert proxy.ask("POST", f"/topics/{topic}", write_to).status == 200
    idle = create(proxy, "idle")
    assert read(proxy, idle, topic, 1) == ["a"]
    ids = "/consumers/idle/ids"
    assert len(children(zookeeper, broker, ids)) == 1
    wait_until("the end of the instance", 30, lambda: children(zookeeper, broker, ids) == [])
    assert proxy.ask("GET", f"{idle}/topics/{topic}").body["error_code"] == 40403
    reading = create(proxy, "idle")
    assert read(proxy, reading, topic, 1) == ["a"]
    answers: list[Any] = []
    thread = threading.Thread(
        target=lambda: answers.append(proxy.ask("GET", f"{reading}/topics/{topic}"))
    )
    thread.start()
    time.sleep(6)  # longer than the idle time: a read in progress is not ended
    assert answers == []
    assert proxy.stop() == 143
    thread.join()
    assert [answered.status for answered in answers] == [200]
    assert children(zookeeper, broker, ids) == []
    assert children(zookeeper, broker, f"/consumers/idle/owners/{topic}") == []


@pytest.mark.scenario("ops-55")
def test_only_loopback_and_known_hosts(broker: Broker, proxy: RestProxy) -> None:
    assert proxy.ask("GET", "/topics", Host="evil.example").status in (403, 421)
    assert proxy.ask("GET", "/topics", Host=f"localhost:{proxy.port}").status == 200
    with socket.socket() as probe:
        probe.settimeout(5)
        with pytest.raises(OSError):
            probe.connect(("127.0.0.2", proxy.port))


NODE_CLIENT = """
const kafka = new (require('kafka-rest'))({url: process.argv[2]});
const topic = process.argv[3];
kafka.topic(topic).produce('first', 'second', (err, res) => {
  if (err) { console.error(err); process.exit(2); }
  const settings = {'auto.offset.reset': 'smallest'};
  kafka.consumer('node').join(settings, (err, consumer) => {
    if (err) { console.error(err); process.exit(3); }
    const stream = consumer.subscribe(topic);
    const found = [];
    stream.on('data', msgs => {
      for (const msg of msgs) found.push(msg.value.toString('utf8'));
      if (found.length < 2) return;
      consumer.commit((err) => {
        if (err) { console.error(err); process.exit(4); }
        consumer.shutdown(() => { console.log(found.join(',')); process.exit(0); });
      });
    });
  });
});
"""


@pytest.mark.scenario("ops-41")
def test_the_client_of_node(broker: Broker, proxy: RestProxy, tmp_path: Path) -> None:
    """npm's kafka-rest 0.0.5, as it is."""
    if shutil.which("npm") is None:
        pytest.skip("no npm on PATH to install kafka-rest 0.0.5")
    install = [
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "--prefix",
        tmp_path,
        "kafka-rest@0.0.5",
    ]
    done = subprocess.run(install, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"npm could not install kafka-rest 0.0.5: {done.stderr[-200:]}")
    topic = f"node-{broker.kind}"
    broker.create_topic(topic)
    script = tmp_path / "client.js"
    script.write_text(NODE_CLIENT)
    done = subprocess.run(
        ["node", script, proxy.url, topic],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "first,second\n"), done.stderr
    node = f"/consumers/node/offsets/{topic}/0"
    assert zookeeper_text(broker.zookeeper, node) == "2"


@pytest.mark.scenario("ops-44")
def test_topics_by_v3(broker: Broker, proxy: RestProxy, our_tools: Tools) -> None:
    """Changes by v3 are seen by the tools."""
    topic, json_type = f"admin-{broker.kind}", "application/json"
    clusters = proxy.ask("GET", "/v3/clusters").body["data"]
    base = f"/v3/clusters/{clusters[0]['cluster_id']}/topics"

    def described() -> str:
        args = ["--zookeeper", broker.zookeeper, "--describe", "--topic", topic]
        return our_tools.run("kafka.admin.TopicCommand", *args).out

    body = {"topic_name": topic, "partitions_count": 2, "replication_factor": 1}
    assert proxy.ask("POST", base, body, json_type).status == 201
    assert "PartitionCount:2" in described()
    value = {"value": "60000"}
    path = f"{base}/{topic}"
    assert proxy.ask("PUT", f"{path}/configs/retention.ms", value, json_type).status == 204
    assert proxy.ask("PATCH", path, {"partitions_count": 3}, json_type).status == 200
    assert "PartitionCount:3" in described()
    assert "Configs:retention.ms=60000" in described()
    replicas = proxy.ask("GET", f"{path}/partitions/2/replicas").body["data"]
    assert [each["broker_id"] for each in replicas] == [broker.broker_id]
    write(proxy, topic, "a", "b", "c")
    base_uri = create(proxy, "lagging")
    proxy.ask("GET", f"{base_uri}/topics/{topic}?max_bytes=1")
    assert proxy.ask("POST", f"{base_uri}/offsets").status == 200
    lags = base.replace("/topics", "/consumer-groups/lagging/lag-summary")
    assert proxy.ask("GET", lags).body["max_lag"] == 2
    assert proxy.ask("DELETE", base_uri).status == 204
    # These brokers do not delete topics: it is marked, as the tool marks it.
    assert proxy.ask("DELETE", path).status == 204
    args = ["--zookeeper", broker.zookeeper, "--list"]
    listed = our_tools.run("kafka.admin.TopicCommand", *args).out
    assert f"{topic} - marked for deletion" in listed


def test_records_by_v3_and_a_group_with_offsets_on_brokers(
    broker: Broker, proxy: RestProxy
) -> None:
    """Records one after the other in a body that is sent in chunks, as by ``curl -T-``."""
    topic, group = f"records-{broker.kind}", f"offsets-{broker.kind}"
    broker.create_topic(topic)
    cluster = proxy.ask("GET", "/v3/clusters").body["data"][0]["cluster_id"]
    path = f"/v3/clusters/{cluster}/topics/{topic}/records"
    bodies = [
        {"partition_id": 0, "value": {"type": "JSON", "data": {"number": number}}}
        for number in range(3)
    ]
    sent = "\n".join(map(json.dumps, [bodies[0], {"value": {"type": "AVRO"}}, *bodies[1:]]))
    command = ["curl", "-sS", "-X", "POST", "-T-", "-H", "Content-Type: application/json"]
    done = subprocess.run(
        [*command, f"http://127.0.0.1:{proxy.port}{path}"],
        input=sent,
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["error_code"] for each in answers] == [200, 422, 200, 200], done.stdout
    assert [each.get("offset") for each in answers] == [0, None, 1, 2]
    with broker.wire() as wire:
        assert [each.value for each in wire.read_all(topic, 0)] == [
            b'{"number":%d}' % number for number in range(3)
        ]
        wait_until("a coordinator", 60, lambda: not wire.coordinator_error(group))
        wait_until("a commit", 60, lambda: not wire.commit(group, topic, 0, 1))
    groups = f"/v3/clusters/{cluster}/consumer-groups"
    listed = {each["consumer_group_id"]: each for each in proxy.ask("GET", groups).body["data"]}
    assert listed[group]["state"] in ("EMPTY", "DEAD")
    assert listed[group]["coordinator"]["related"].endswith(f"/brokers/{broker.broker_id}")
    summary = proxy.ask("GET", f"{groups}/{group}/lag-summary").body
    assert (summary["total_lag"], summary["max_lag_topic_name"]) == (2, topic)
