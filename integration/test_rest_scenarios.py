"""The REST proxy by curl, beside Scala consumers and the reassignment tool, and at its limits."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.harness import Broker, Process, Tools, ZooKeeper, properties, zookeeper_text
from integration.rest_proxy import RestProxy, by_curl
from integration.test_rest import BINARY_V1, children, create, encoded, read, write
from integration.wire import wait_until

READERS = 200
LIMIT = 500_000
NEVER_MS = 600_000  # of reads that must not end by themselves within a test
REASSIGN = "kafka.admin.ReassignPartitionsCommand"


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
PLAIN = "application/vnd.kafka.v1+json"


@pytest.mark.scenario("ops-27")
def test_the_quick_start_by_curl(
    broker: Broker, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    # A read is answered with the first message. The script reads once only.
    proxy = proxy_of(broker, tmp_path / "rest", launch, consumer__request__timeout__ms=60000)
    test, jsontest = f"curl-{broker.kind}", f"curljson-{broker.kind}"
    for topic in (test, jsontest):
        broker.create_topic(topic)
    script = CURL.replace("http://localhost:8082", proxy.url)
    script = script.replace("topics/test", f"topics/{test}")
    script = script.replace("topics/jsontest", f"topics/{jsontest}")
    answers = by_curl(script, tmp_path)
    assert [each.shown for each in answers] == [
        *[f"200 {PLAIN}"] * 6,
        f"200 {BINARY_V1}",
        f"200 {PLAIN}",
        "204 ",
        *[f"200 {PLAIN}"] * 2,
        "200 application/vnd.kafka.json.v1+json",
        "204 ",
    ]
    bodies: list[Any] = [each.body for each in answers]
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


# --- groups


@pytest.mark.scenario("ops-34")
@pytest.mark.original
def test_a_group_is_shared_with_a_scala_consumer(
    broker: Broker, zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """The console consumer of 0.8.2.2. Each message is read once in all."""
    topic, group = f"scala-{broker.kind}", "scala"
    broker.create_topic(topic, 2)
    proxy = proxy_of(broker, tmp_path / "rest", launch, consumer__request__timeout__ms=500)
    config = tmp_path / "consumer.properties"
    settings = {
        "group.id": group,
        "consumer.id": "console",
        "rebalance.backoff.ms": 500,
        "rebalance.max.retries": 30,
        "zookeeper.session.timeout.ms": 10000,
    }
    config.write_text(properties(settings))
    base_uri = create(proxy, group, id="rest")
    # The console consumer begins at committed offsets, without them at what is written later.
    write(proxy, topic, "first 0", partition=0)
    write(proxy, topic, "first 1", partition=1)
    assert set(read(proxy, base_uri, topic, 2)) == {"first 0", "first 1"}
    assert proxy.ask("POST", f"{base_uri}/offsets").status == 200
    args = ["--zookeeper", broker.zookeeper, "--topic", topic, "--consumer.config", str(config)]
    scala = Tools("original", tmp_path / "tools").background("kafka.tools.ConsoleConsumer", *args)
    launch(scala)
    owners = f"/consumers/{group}/owners/{topic}"

    def owned() -> list[str]:
        found = [zookeeper_text(broker.zookeeper, f"{owners}/{number}") for number in (0, 1)]
        return sorted(each or "" for each in found)

    both = [f"{group}_console-0", f"{group}_rest-0"]
    wait_until("an owner each", 120, lambda: owned() == both)
    ids = [f"{group}_console", f"{group}_rest"]
    assert children(zookeeper, broker, f"/consumers/{group}/ids") == ids
    wanted = []
    for number in range(40):
        wanted.append(f"message {number}")
        write(proxy, topic, wanted[-1], partition=number % 2)
    by_rest = read(proxy, base_uri, topic, 20)
    wait_until("the other half", 60, lambda: len(scala.log.splitlines()) >= 20)
    # Nothing comes twice: neither has more, and each partition has still its owner.
    assert proxy.ask("GET", f"{base_uri}/topics/{topic}").body == []
    by_scala = [line for line in scala.log.splitlines() if line.startswith("message ")]
    assert (len(by_rest), len(by_scala)) == (20, 20)
    assert sorted(by_rest + by_scala) == sorted(wanted)
    assert owned() == both
    # The partition of the Scala consumer goes to the instance, at the committed offset.
    assert scala.stop() in (0, 143)
    wait_until("both partitions", 60, lambda: owned() == [f"{group}_rest-0"] * 2)
    write(proxy, topic, "later 0", partition=0)
    write(proxy, topic, "later 1", partition=1)
    later: list[str] = []

    def both_came() -> bool:
        later.extend(read(proxy, base_uri, topic, 1))
        return {"later 0", "later 1"} <= set(later)

    wait_until("later ones", 60, both_came)
    assert proxy.ask("DELETE", base_uri).status == 204
    assert children(zookeeper, broker, f"/consumers/{group}/ids") == []
    assert proxy.stop() == 143


# --- large messages


@pytest.mark.scenario("ops-37")
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


# --- long reads


@pytest.mark.scenario("ops-39")
def test_produces_do_not_wait_for_long_reads(
    broker: Broker, zookeeper: ZooKeeper, tmp_path: Path, launch: Callable[[Process], None]
) -> None:
    """No read ends by itself: those that are answered early, or hold up a produce, are seen."""
    quiet, busy = f"quiet-{broker.kind}", f"beside-{broker.kind}"
    for topic in (quiet, busy):
        broker.create_topic(topic)
    proxy = proxy_of(
        broker,
        tmp_path / "rest",
        launch,
        consumer__request__timeout__ms=NEVER_MS,
        consumer__instance__timeout__ms=NEVER_MS,
        consumer__instances__max=READERS,
        zookeeper__session__timeout__ms=30000,
    )
    # A group each: members of one group would wait for each other's rebalances.
    groups = [f"long-{number}" for number in range(READERS)]
    uris = [create(proxy, group) for group in groups]
    answers: list[Any] = []

    def wait(base_uri: str) -> None:
        answers.append(proxy.ask("GET", f"{base_uri}/topics/{quiet}", timeout=NEVER_MS / 1000))

    readers = [threading.Thread(target=wait, args=(uri,), daemon=True) for uri in uris]
    for reader in readers:
        reader.start()
    client = zookeeper.client(f"/{broker.kind}")
    try:

        def all_read() -> bool:
            owners = [f"/consumers/{group}/owners/{quiet}/0" for group in groups]
            return all(client.exists(owner) for owner in owners)

        wait_until("all to own the partition", 300, all_read)
    finally:
        client.stop()
        client.close()
    assert proxy.ask("POST", "/consumers/more").status == 429
    writers = [
        threading.Thread(target=write, args=(proxy, busy, *[f"{number}"] * 20), daemon=True)
        for number in range(10)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(NEVER_MS / 2000)
        assert not writer.is_alive()
    path = f"/topics/{busy}/partitions/0/messages?offset=0&count=200"
    assert len(proxy.ask("GET", path).body) == 200
    assert answers == []
    assert all(reader.is_alive() for reader in readers)
    write(proxy, quiet, "at last")
    for reader in readers:
        reader.join(NEVER_MS / 2000)
    assert [answered.status for answered in answers] == [200] * READERS
    values = [[each["value"] for each in answered.body] for answered in answers]
    assert values == [[encoded("at last")]] * READERS
    assert proxy.stop() == 143


# --- reassignments


@pytest.mark.scenario("ops-44")
@pytest.mark.parametrize("members", ["ours", pytest.param("original", marks=pytest.mark.original)])
def test_a_reassignment_is_shown_by_v3_as_by_the_tool(
    members: str, zookeeper: ZooKeeper, tools: Tools, tmp_path: Path,
    launch: Callable[[Process], None],
) -> None:  # fmt: skip
    """The new replica's broker is frozen for as long as the move must not end."""
    chroot = f"{zookeeper.connect}/moves-{members}-{tools.kind}"
    # A frozen broker keeps its session.
    props = {"zookeeper.session.timeout.ms": 60000, "replica.lag.time.max.ms": 60000}
    brokers = []
    for number in (1, 2):
        broker = Broker(members, tmp_path / f"b{number}", chroot, broker_id=number, props=props)
        launch(broker)
        brokers.append(broker.start())
    first, second = brokers
    first.create_topic("moved", 2)
    proxy = proxy_of(first, tmp_path / "rest", launch)
    write(proxy, "moved", *[f"{number}" for number in range(50)])
    cluster = proxy.ask("GET", "/v3/clusters").body["data"][0]["cluster_id"]
    base = f"/v3/clusters/{cluster}/topics/moved/partitions"

    def moves() -> list[tuple[int, list[int], list[int]]]:
        data = proxy.ask("GET", f"{base}/-/reassignment").body["data"]
        names = ("partition_id", "adding_replicas", "removing_replicas")
        return [tuple(each[name] for name in names) for each in data]

    plan = {"topic": "moved", "partition": 0, "replicas": [2]}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"version": 1, "partitions": [plan]}))

    def tool(action: str) -> str:
        args = ["--zookeeper", chroot, "--reassignment-json-file", str(file), action]
        done = tools.run(REASSIGN, *args)
        assert done.code == 0, done.err
        return done.out

    assert moves() == []
    assert proxy.ask("GET", f"{base}/0/reassignment").status == 404
    second.pause()
    try:
        assert "Successfully started reassignment" in tool("--execute")
        wait_until("the move", 60, lambda: moves() == [(0, [2], [1])])
        assert "Reassignment of partition [moved,0] is still in progress" in tool("--verify")
        one = proxy.ask("GET", f"{base}/0/reassignment").body
        assert (one["adding_replicas"], one["removing_replicas"]) == ([2], [1])
        assert proxy.ask("GET", f"{base}/1/reassignment").status == 404
        everywhere = f"/v3/clusters/{cluster}/topics/-/partitions/-/reassignment"
        listed = proxy.ask("GET", everywhere).body["data"]
        assert [(each["topic_name"], each["partition_id"]) for each in listed] == [("moved", 0)]
    finally:
        second.resume()
    wait_until("the end of the move", 120, lambda: moves() == [])
    assert "Reassignment of partition [moved,0] completed successfully" in tool("--verify")
    assert proxy.ask("GET", f"{base}/0/reassignment").status == 404

    def replicas() -> list[tuple[int, bool, bool]]:
        data = proxy.ask("GET", f"{base}/0/replicas").body["data"]
        return [(each["broker_id"], each["is_leader"], each["is_in_sync"]) for each in data]

    wait_until("the new leader", 60, lambda: replicas() == [(2, True, True)])
    path = "/topics/moved/partitions/0/messages?offset=0&count=100"
    wait_until("all messages", 60, lambda: len(proxy.ask("GET", path).body) == 50)
    assert proxy.stop() == 143
