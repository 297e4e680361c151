"""kafka08.console.topics.pages."""

from __future__ import annotations

import re

import pytest

from kafka08.common import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kafka08.protocol.admin_schemas import DescribeLogDirsRequest
from tests.console.scene import ConsoleScene, answer_directories, directory, scene_with_bytes
from zk import znodes

TOPIC = r'<td class="long"><a href="/topics/(\w+)">'


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
