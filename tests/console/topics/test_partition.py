"""kafka08.console.topics.partition."""

from __future__ import annotations

import pytest

from kafka08.common import TopicPartition
from kafka08.protocol.admin_schemas import DescribeLogDirsRequest
from tests.console.scene import ConsoleScene, answer_directories, directory, text_of
from tests.fakes.transactions import Begun
from zk import znodes


def scene_with_partition(**settings: object) -> ConsoleScene:
    """Replicas on 1 and 2, led by 2, in sync 2, with 10 messages; broker 1 reports its disks."""
    scene = ConsoleScene(**settings)  # type: ignore[arg-type]
    scene.topic("t", [1, 2], leader=2, isr=[2])
    scene.produce("t", *[b"m"] * 10)
    scene.commit("slow", "t", 4)
    scene.commit("done", "t", 10)
    answer_directories(scene, directory("/a", "t", 1536))
    scene.look()
    return scene


def test_a_partition_with_its_replicas_and_groups() -> None:
    scene = scene_with_partition()
    page = scene.page("/topics/t/0")
    assert "Partition 0 of t" in page
    assert "State under-replicated leader not preferred Leader 2 epoch 0" in page
    assert "First offset 0" in page and "End 10" in page and "Messages 10" in page
    assert "1 follower preferred not in sync 1.5 KiB 2 leader in sync -" in page
    assert page.index("slow 4 6") < page.index("done 10 0")
    assert "Last stable offset" not in page
    raw = scene.get("/topics/t/0").text
    for start in ("oldest&amp;at=", "newest&amp;at=", "tail&amp;at=10"):
        assert f"/topics/t/messages?partition=0&amp;from={start}" in raw
    assert '/topics/t/messages?partition=0&amp;from=offset&amp;at=4">offset 4<' in raw
    assert scene.get("/topics/t/messages?partition=0&from=oldest&at=").status_code == 200
    assert len(scene.cluster.sent(DescribeLogDirsRequest)) == 1  # the page asks no broker


def test_the_same_as_json() -> None:
    scene = scene_with_partition()
    found = scene.client.get("/topics/t/0", headers={"Accept": "application/json"}).json
    assert found is not None
    assert (found["topic"], found["partition"], found["leader"]) == ("t", 0, 2)
    assert found["replicas"] == [
        {"broker": 1, "is_leader": False, "in_sync": False, "size_bytes": 1536},
        {"broker": 2, "is_leader": True, "in_sync": True, "size_bytes": None},
    ]
    assert (found["first_offset"], found["end"], found["messages"]) == (0, 10, 10)
    assert found["last_stable_offset"] is None
    slow, done = found["groups"]
    assert (slow["name"], slow["offset"], slow["lag"], slow["first_unread"]) == ("slow", 4, 6, 4)
    assert (done["name"], done["lag"], done["first_unread"]) == ("done", 0, None)


def test_a_group_without_a_commit_there() -> None:
    scene = ConsoleScene()
    scene.server.put(znodes.topic_path("t"), znodes.encode_topic({0: [1], 1: [1]}))
    scene.cluster.create("t", 2, 1)
    scene.cluster.append("t", 1, b"m")
    scene.commit("g", "t", 0)
    scene.look()
    assert "g none - - no commit -" in scene.page("/topics/t/1")
    assert 'href="/topics/t/1" aria-label="1, partition of t">1<' in scene.get("/topics/t").text


def test_an_open_transaction_holds_readers_back() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.produce("t", b"a", b"b", b"c")
    scene.cluster.transactions.begin(Begun("id", 1, 7, 0, {scene.first("t"): 1}))
    scene.look()
    assert scene.observer.held()
    assert "Last stable offset 1 2 held back" in scene.page("/topics/t/0")
    found = scene.client.get("/topics/t/0", headers={"Accept": "application/json"}).json
    assert found is not None and found["last_stable_offset"] == 1


def test_what_is_not_known() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1], leader=-1, isr=[])
    scene.cluster.leaders[TopicPartition("t", 0)] = -1
    scene.observer.look()
    page = scene.page("/topics/t/0")
    assert "State no leader Leader none" in page
    assert "First offset - End - Messages -" in page
    assert "No group has committed offsets for its topic." in page


def test_without_zookeeper_the_last_state_is_shown() -> None:
    scene = scene_with_partition()
    scene.session.down = True
    assert "leader not preferred Leader 2 First offset" in text_of(scene.get("/topics/t/0").text)


def test_without_messages_there_are_no_links_to_them() -> None:
    scene = scene_with_partition(show_messages=False)
    page = scene.get("/topics/t/0").text
    assert "/messages" not in page and "offset 4" in page


@pytest.mark.parametrize("path", ["/topics/t/1", "/topics/none/0", "/topics/t/-1", "/topics/t/x"])
def test_an_unknown_partition(path: str) -> None:
    assert scene_with_partition().get(path).status_code == 404
