"""kafka08.console.pages.all_messages."""

from __future__ import annotations

import re

import pytest

from kafka08.common import TopicPartition
from kafka08.message.record_sets import encode_records
from kafka08.protocol import schemas
from tests.console.scene import ConsoleScene
from zk import znodes

PAGE = "/topics/t/messages/all"
NOW = 1_700_000_000_000


def scene_with(*partitions: list[tuple[int, bytes]], **settings: object) -> ConsoleScene:
    """A topic with (ms after NOW, value) in each partition."""
    scene = ConsoleScene(**settings)
    scene.server.put(
        znodes.topic_path("t"), znodes.encode_topic({key: [1] for key in range(len(partitions))})
    )
    scene.cluster.create("t", len(partitions), 1)
    for number, records in enumerate(partitions):
        if records:
            times = [NOW + time for time, _ in records]
            data = encode_records([value for _, value in records], None, times, None)
            scene.cluster.store(TopicPartition("t", number), data)
    scene.look()
    return scene


def rows(page: str) -> list[tuple[int, int]]:
    """(partition, offset) of each row."""
    return [(int(a), int(b)) for a, b in re.findall(r'id="message-(\d+)-(\d+)"', page)]


def test_the_newest_of_all_by_time() -> None:
    scene = scene_with([(1, b"a"), (4, b"b")], [(2, b"c"), (3, b"d")], [])
    page = scene.get(PAGE).text
    assert rows(page) == [(0, 1), (1, 1), (1, 0), (0, 0)]
    assert "4 messages in 3 of 3 partitions" in scene.page(PAGE)
    assert rows(scene.get(f"{PAGE}?from=oldest").text) == [(0, 0), (1, 0), (1, 1), (0, 1)]
    assert f'href="{PAGE}"' in scene.get("/topics/t/messages").text


def test_a_page_asks_once_who_leads_and_names_no_topic() -> None:
    """Metadata of all is large, and naming a topic that is gone could create it."""
    scene = scene_with(*[[(part, b"m")] for part in range(20)])
    for later_s, times in ((1, 1), (0.5, 0), (0.5, 1)):
        scene.runtime.clock.advance(later_s)
        before = scene.cluster.sent(schemas.MetadataRequest)
        assert len(rows(scene.get(PAGE).text)) == 20
        asked = scene.cluster.sent(schemas.MetadataRequest)[len(before) :]
        assert [list(each.topics or ()) for each in asked] == [[]] * times


def test_a_page_of_them() -> None:
    scene = scene_with(*[[(10 * at + part, b"m") for at in range(40)] for part in range(3)])
    found = rows(scene.get(PAGE).text)
    assert found[:4] == [(2, 39), (1, 39), (0, 39), (2, 38)] and len(found) == 50


def test_equal_times_keep_the_order_of_a_partition() -> None:
    scene = scene_with([(0, b"a"), (0, b"b")], [(0, b"c")])
    assert rows(scene.get(f"{PAGE}?from=oldest").text) == [(0, 0), (0, 1), (1, 0)]


def test_a_search_in_all() -> None:
    scene = scene_with([(1, b"hay"), (2, b"needle")], [(3, b"needle")])
    assert rows(scene.get(f"{PAGE}?from=oldest&has=needle").text) == [(0, 1), (1, 0)]
    assert "Found 2, read 3 in 2 of 2 partitions" in scene.page(f"{PAGE}?from=oldest&has=needle")


def test_a_partition_that_cannot_be_read_does_not_hide_the_others() -> None:
    scene = scene_with([(1, b"a")], [(2, b"b")])
    scene.cluster.leaders[TopicPartition("t", 1)] = -1
    page = scene.get(PAGE).text
    assert rows(page) == [(0, 0)]
    assert "Partition 1 cannot be read" in page


def test_the_limits_are_those_of_all_together() -> None:
    scene = scene_with([(1, b"a" * 100)], [(2, b"b" * 100)], browse_max_bytes=150)
    page = scene.page(PAGE)
    assert "in 1 of 2 partitions" in page and "limit of 150 bytes" in page


def test_messages_without_a_time_are_told() -> None:
    scene = scene_with([(1, b"a")], [])
    scene.cluster.append("t", 1, b"old")
    assert rows(scene.get(PAGE).text) == [(0, 0), (1, 0)]
    assert "1 of them have no time" in scene.page(PAGE)


@pytest.mark.parametrize(
    "query", ["from=offset", "from=tail", "as=exec", "from=newest&at=5", "from=time&at=x"]
)
def test_a_wrong_field(query: str) -> None:
    assert scene_with([(1, b"a")]).get(f"{PAGE}?{query}").status_code == 400


def test_contents_are_hidden_if_told() -> None:
    assert scene_with([(1, b"a")], show_messages=False).get(PAGE).status_code == 403
