"""kafka08.console.pages.cluster."""

from __future__ import annotations

import re

import pytest

from kafka08.common import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition
from kafka08.console.app import ROUTES
from kafka08.console.shown import moment
from kafka08.protocol.admin_schemas import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    LogDir,
    LogDirPartition,
    LogDirTopic,
)
from tests.console.scene import BROKERS, ConsoleScene, text_of
from tests.fakes.transactions import Begun
from zk import znodes

TOPIC = r'<td class="long"><a href="/topics/(\w+)">'


def test_the_overview_of_a_good_cluster() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.look()
    page = scene.page("/")
    assert "Brokers up 2 of 2" in page
    assert "Controller 1 epoch 3" in page
    assert "Under-replicated 0" in page


@pytest.mark.scenario("ops-45")
def test_a_killed_broker_turns_the_overview_red() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.topic("u", [2])
    scene.look()
    scene.server.remove(znodes.broker_path(2))
    scene.cluster.leaders[TopicPartition("u", 0)] = -1
    scene.observer.look()
    page = scene.get("/").text
    assert 'id="brokers-up" class="bad">1 of 2' in page
    assert 'id="offline" class="bad">1<' in page
    assert "data-refresh=" in page
    assert "broker 2" not in page


@pytest.mark.scenario("ops-45")
def test_brokers_of_both_kinds() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.look()
    page = scene.page("/brokers")
    assert "b1:9091 up controller kafka08 2014-05-13 16:53:20 UTC 1 1" in page
    assert "b2:9092 up 0.8.2.2 no metrics" in page


def test_a_dead_broker_that_assignments_name_is_listed() -> None:
    scene = ConsoleScene()
    scene.topic("t", [7], leader=-1, isr=[])
    scene.look()
    assert "7 - down" in scene.page("/brokers")


def test_a_broker_that_dies_keeps_its_address_and_shows_since_when() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.look()
    address = scene.observer.state.brokers[1].addresses[0]  # type: ignore[union-attr]
    del scene.server.nodes["/brokers/ids/1"]
    scene.runtime.clock.advance(60)
    gone_ms = scene.runtime.clock.millis()
    for _ in range(2):
        scene.look()
        page = scene.page("/brokers")
        assert f"1 {address} down kafka08 {moment(gone_ms)}" in page
        scene.runtime.clock.advance(60)
    assert address in scene.page("/brokers/1")


def test_a_broker_without_replicas_that_has_gone_is_shown_for_an_hour() -> None:
    scene = ConsoleScene()
    scene.look()
    del scene.server.nodes["/brokers/ids/1"]
    scene.look()
    scene.runtime.clock.advance(3599)
    scene.look()
    assert scene.observer.state is not None and 1 in scene.observer.state.brokers
    scene.runtime.clock.advance(2)
    scene.look()
    assert 1 not in scene.observer.state.brokers


def test_one_broker_with_its_partitions() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.topic("u", [2])
    failed = znodes.encode_offline_replicas([TopicPartition("t", 0)])
    scene.server.put(znodes.offline_replicas_path(1), failed)
    scene.look()
    page = scene.page("/brokers/1")
    assert "t 0" in page
    assert "u 0" not in page
    assert "1 partitions are in a failed data directory" in page
    assert scene.get("/brokers/9").status_code == 404


def directory(path: str, topic: str, size: int, total: int = -1, free: int = -1) -> LogDir:
    """With partition 0 of a topic, of ``size`` bytes."""
    topics = [LogDirTopic(topic, [LogDirPartition(0, size, 0, False)])]
    return LogDir(0, path, topics, total, free)


def answer_directories(scene: ConsoleScene, *directories: LogDir) -> None:
    """To DescribeLogDirs of every broker."""
    answer = DescribeLogDirsResponse(0, list(directories))
    scene.cluster.script = lambda _, request: (
        answer if isinstance(request, DescribeLogDirsRequest) else None
    )


def test_data_directories_of_a_broker_that_tells_them() -> None:
    scene = ConsoleScene()
    for topic in ("t", "u"):
        scene.topic(topic, [1])
    failed = LogDir(56, "/data/b", [])
    last = directory("/data/c", "u", 1024, 4 << 20, 512)
    answer_directories(scene, directory("/data/a", "t", 2048), failed, last)
    scene.look()
    page = scene.page("/brokers/1")
    assert "On disk 3.0 KiB" in page
    assert "/data/a good 1 2.0 KiB -" in page
    assert "/data/b" in page
    assert "/data/c good 1 1.0 KiB 512 B of 4.0 MiB" in page
    assert "Data directories" not in scene.page("/brokers/2")
    assert "disk full" not in scene.page("/brokers")
    full = znodes.encode_offline_replicas([], [TopicPartition("u", 0)])
    scene.server.put(znodes.offline_replicas_path(1), full)
    scene.look()
    page = scene.page("/brokers/1")
    assert "/data/a good" in page and "/data/c full 1" in page
    assert "up controller disk full" in scene.page("/brokers")


def test_a_broker_that_does_not_report_its_directories() -> None:
    scene = ConsoleScene()
    scene.look()
    assert "This broker does not report its directories." in scene.page("/brokers/1")


def test_sizes_on_disk() -> None:
    """Broker 2 is of 0.8.2.2 and does not report any."""
    scene = ConsoleScene()
    scene.topic("a", [1, 2])
    scene.topic("b", [1])
    scene.topic("c", [2])
    answer_directories(scene, directory("/a", "a", 1536), directory("/b", "b", 5 << 30))
    scene.look()
    assert len(scene.cluster.sent(DescribeLogDirsRequest)) == 1
    exact = '<span title="5,368,709,120 bytes">5.0 GiB</span>'
    topics = scene.get("/topics?sort=-size_bytes").text
    assert exact in topics
    assert re.findall(TOPIC, topics) == ["b", "a", "c"]
    assert '<span title="5,368,710,656 bytes">5.0 GiB</span>' in scene.get("/brokers").text
    page = scene.page("/topics/a")
    assert "On disk, all replicas 1.5 KiB Largest replica 1.5 KiB" in page
    assert "Replicas whose size is known 1 of 2" in page
    page = scene.page("/topics/c")
    assert "On disk, all replicas - Largest replica - Replicas whose size is known 0 of 1" in page
    for path in ("/topics", "/topics/a", "/brokers", "/brokers/1"):
        scene.get(path)
    assert len(scene.cluster.sent(DescribeLogDirsRequest)) == 1  # pages ask no broker


def test_topics_are_filtered_and_internal_ones_hidden() -> None:
    scene = ConsoleScene()
    for name in ("orders", "Orders-late", "users", OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
        scene.topic(name, [1])
    scene.look()
    assert "3 of 5 topics" in scene.page("/topics")
    assert "2 of 5 topics" in scene.page("/topics?name=ORDERS")
    assert "5 of 5 topics" in scene.page("/topics?internal=1")


@pytest.mark.parametrize("show", ["under-replicated", "offline", "not-preferred"])
def test_topics_that_need_care(show: str) -> None:
    scene = ConsoleScene()
    scene.topic("good", [1])
    scene.topic("bad", [1], leader=-1)
    scene.cluster.script = None
    scene.look()
    found = scene.page(f"/topics?show={show}")
    assert "good" not in found
    assert ("bad" in found) == (show != "under-replicated")


@pytest.mark.scenario("ops-46")
def test_a_partition_whose_leader_is_not_preferred() -> None:
    """Replicas 1, 2, 3; led by 2; in sync 2, 3: the page shows what ZooKeeper has now."""
    scene = ConsoleScene()
    scene.topic("t", [1, 2, 3], leader=2, isr=[2, 3])
    scene.produce("t", b"a", b"b")
    scene.look()
    page = scene.page("/topics/t")
    assert "0 2 1 , 2 , 3 2, 3 under-replicated leader not preferred 0 2 2" in page


def test_settings_of_a_topic_beside_defaults() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.server.put(
        znodes.topic_config_path("t"), znodes.encode_topic_config({"cleanup.policy": "compact"})
    )
    scene.look()
    assert "cleanup.policy compact delete" in scene.page("/topics/t")


def test_groups_that_read_a_topic() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.produce("t", *[b"m"] * 10)
    scene.commit("readers", "t", 4)
    scene.look()
    assert "readers STOP 6 0" in scene.page("/topics/t")


def test_an_unknown_topic() -> None:
    scene = ConsoleScene()
    scene.look()
    assert scene.get("/topics/none").status_code == 404


@pytest.mark.scenario("ops-54")
def test_without_zookeeper_the_last_state_is_shown_with_its_age() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.look()
    scene.session.down = True
    scene.runtime.clock.advance(90)
    scene.observer.look()
    for path in ("/", "/brokers", "/topics", "/topics/t", "/groups"):
        page = text_of(scene.get(path).text)
        assert "The cluster cannot be looked at" in page
        assert "1 min 30 s ago" in page
    scene.session.down = False
    scene.observer.look()
    assert "cannot be looked at" not in scene.page("/")


@pytest.mark.scenario("ops-54")
def test_no_page_waits_for_zookeeper_for_longer_than_five_seconds() -> None:
    """By the clock of the test: each call to ZooKeeper takes as long as the console allows."""
    scene = ConsoleScene(read_only=False)
    scene.topic("t", [1])
    scene.produce("t", b"m")
    scene.commit("g", "t", 0)
    scene.cluster.transactions.begin(Begun("id", 1, 7, 0, {scene.first("t"): 0}))
    scene.look()
    session, clock = scene.session, scene.runtime.clock
    limit = min(scene.config.request_timeout_ms, scene.config.zookeeper_session_timeout_ms) / 1000
    session.down = True
    session.before = lambda call, path: clock.advance(limit)
    known = {"<int:broker_id>": "1", "<int:number>": "0", "<name>": "t"}
    query = {"name": "g", "offset": "0", "transaction": "7:0:0", "user": "u", "user_is": "named"}
    query |= {"resource_type": "TOPIC", "pattern_type": "LITERAL", "resource_name": "t"}
    query |= {"principal": "User:u", "permission": "ALLOW", "operation": "READ"}
    shown = 0
    for route in ROUTES:
        if route.changes or route.path.startswith("/static/"):
            continue
        path = route.path
        for word, value in known.items():
            path = path.replace(word, value)
        begin = clock.monotonic()
        given = {**query, "to": "earliest"} if path == "/group/reset" else query
        answer = scene.get(path, query_string=given)
        assert clock.monotonic() - begin <= 5, path
        assert answer.status_code in (200, 503), path
        shown += answer.status_code == 200
    assert shown > 10


def test_before_the_first_look() -> None:
    scene = ConsoleScene()
    response = scene.get("/")
    assert response.status_code == 503
    assert "has not been seen yet" in response.text


def test_without_any_broker_leaders_are_unknown() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.cluster.down = {broker.port for broker in BROKERS}
    scene.observer.look()
    assert "No broker answers" in scene.page("/")


def scene_with_bytes() -> ConsoleScene:
    """Broker 1 leads t and quiet; broker 2 is of 0.8.2.2 and leads u."""
    scene = ConsoleScene(broker_http=("1=127.0.0.1:9404",))
    scene.topic("quiet", [1])
    scene.topic("t", [1])
    scene.topic("u", [2])
    scene.look()
    scene.count_bytes({"": (0, 0)}, {"": (20480, 5120), "t": (20480, 5120)})
    return scene


def test_bytes_in_and_out_of_brokers() -> None:
    scene = scene_with_bytes()
    exact = '<span title="2,048 bytes per second">2.0 KiB/s</span>'
    assert exact in scene.get("/brokers").text
    page = scene.page("/brokers")
    assert "2.0 KiB/s 512 B/s" in page and "not known not known" in page
    first = scene.page("/brokers/1")
    assert "Bytes in, from producers 2.0 KiB/s Bytes out, to consumers 512 B/s" in first
    assert "are not known:" not in first
    second = scene.page("/brokers/2")
    assert "Bytes in, from producers not known Bytes out, to consumers not known" in second
    assert (
        "Bytes in and out are not known: it serves nothing over HTTP if it is of 0.8.2.2;" in second
    )


def test_bytes_in_and_out_of_topics() -> None:
    scene = scene_with_bytes()
    page = scene.page("/topics")
    assert "2.0 KiB/s 512 B/s" in page and "0 B/s 0 B/s" in page and "not known not known" in page
    order = re.findall(TOPIC, scene.get("/topics?sort=-bytes_in_per_second").text)
    assert order == ["t", "quiet", "u"]
    order = re.findall(TOPIC, scene.get("/topics?sort=bytes_out_per_second").text)
    assert order == ["u", "quiet", "t"]
    page = scene.page("/topics/t")
    assert "Bytes in, from producers 2.0 KiB/s Bytes out, to consumers 512 B/s" in page
    assert "Bytes in, from producers not known" in scene.page("/topics/u")


def test_bytes_in_and_out_on_the_overview() -> None:
    scene = scene_with_bytes()
    page = scene.page("/")
    assert "Bytes in, from producers 2.0 KiB/s Bytes out, to consumers 512 B/s" in page
    assert "Bytes are those of 1 of 2 brokers" in page
    none = ConsoleScene()
    none.look()
    page = none.page("/")
    assert "Bytes in, from producers not known" in page and "Bytes are those of" not in page


def test_pages_ask_no_broker_for_bytes() -> None:
    scene = scene_with_bytes()
    scene.runtime.open_socket = None
    for path in ("/", "/brokers", "/brokers/1", "/topics", "/topics/t"):
        assert scene.get(path).status_code == 200
    assert scene.observer.traffic.brokers.keys() == {1}
