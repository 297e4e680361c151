"""kafka08.console.pages.messages."""

from __future__ import annotations

import re

import pytest

from kafka08.common import TopicPartition
from kafka08.message.record_sets import encode_records
from kafka08.producer.encoding import encode_headers
from kafka08.protocol import schemas
from tests.console.scene import ConsoleScene, text_of

MESSAGES = "/topics/t/messages"


def scene_with(*values: bytes, **settings: object) -> ConsoleScene:
    scene = ConsoleScene(**settings)
    scene.topic("t", [1])
    scene.produce("t", *values)
    scene.look()
    return scene


def offsets(page: str) -> list[int]:
    return [int(each) for each in re.findall(r'id="offset-(\d+)"', page)]


def link(page: str, text: str) -> str:
    found = re.search(rf'href="([^"]*)">{text}<', page)
    assert found, page
    return found[1].replace("&amp;", "&")


@pytest.mark.scenario("ops-49")
def test_newest_first_and_older_ones_without_gaps_or_repeats() -> None:
    scene = scene_with(*[b"%d" % number for number in range(120)])
    page = scene.get(MESSAGES).text
    seen = offsets(page)
    assert seen == list(range(119, 69, -1))
    for _ in range(2):
        page = scene.get(link(page, "Older")).text
        seen += offsets(page)
    assert seen == list(range(119, -1, -1))
    assert ">Older<" not in page


@pytest.mark.scenario("ops-49")
def test_a_jump_to_an_offset_and_on() -> None:
    scene = scene_with(*[b"m"] * 120)
    page = scene.get(f"{MESSAGES}?from=offset&at=10").text
    assert offsets(page) == list(range(10, 60))
    assert offsets(scene.get(link(page, "Newer")).text) == list(range(60, 110))


@pytest.mark.scenario("ops-49")
def test_a_search_tells_how_much_it_read_and_goes_on() -> None:
    values = [b"needle" if number % 2 else b"hay" for number in range(300)]
    scene = scene_with(*values)
    page = scene.get(f"{MESSAGES}?from=oldest&has=needle").text
    assert "Found 50, read 100 of 300." in text_of(page)
    page = scene.get(link(page, "Continue the search")).text
    assert "Found 50, read 100 of 300." in text_of(page)


def test_a_search_without_a_result_says_so() -> None:
    scene = scene_with(*[b"hay"] * 30)
    assert "Found 0, read 30 of 30." in scene.page(f"{MESSAGES}?from=oldest&has=needle")


@pytest.mark.scenario("ops-48")
def test_a_script_is_text() -> None:
    scene = scene_with(b"<script>alert(1)</script>")
    page = scene.get(MESSAGES).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert" not in page


@pytest.mark.scenario("ops-48")
def test_empty_and_null_values_and_keys() -> None:
    scene = scene_with()
    scene.cluster.append("t", 0, b"", key=b"k")
    scene.cluster.append("t", 0, None, key=b"")  # type: ignore[arg-type]
    page = scene.page(MESSAGES)
    assert "1 JSON - none empty null" in page
    assert re.search(r"0 JSON - none k 1 bytes raw empty", page)


@pytest.mark.scenario("ops-48")
def test_a_codec_is_named() -> None:
    scene = scene_with()
    scene.cluster.append("t", 0, b"a", b"b", codec=1)
    scene.cluster.append("t", 0, b"c", codec=2)
    page = scene.page(MESSAGES)
    assert "gzip" in page
    assert "snappy" in page
    assert offsets(scene.get(f"{MESSAGES}?from=offset&at=1").text) == [1, 2]


def test_one_message_as_json() -> None:
    scene = scene_with(b"first", b"\xff")
    answer = scene.get("/topics/t/raw?partition=0&offset=0&part=record")
    assert answer.mimetype == "application/json"
    assert answer.json["offset"] == 0
    assert answer.json["value"] == "first"
    answer = scene.get("/topics/t/raw?partition=0&offset=1&part=record")
    assert answer.json["value_base64"] == "/w=="
    assert scene.get("/topics/t/raw?partition=0&offset=9&part=record").status_code == 404


def test_what_can_be_copied_says_what_it_is() -> None:
    """The script makes a button of each; without it there is the text, and the links."""
    page = scene_with(b"short", b"x" * 100_000).get(MESSAGES).text
    named = re.findall(r'data-copy="([^"]*)"', page)
    for text in ("a link to offset 0", "offset 0 as JSON", "the value of offset 0"):
        assert text in named
    assert "what is shown of the value of offset 1" in named
    assert '<a href="/topics/t/raw?partition=0&amp;offset=0&amp;part=record"' in page
    assert "<button" not in page.partition('id="messages"')[2]


@pytest.mark.scenario("ops-48")
def test_the_exact_bytes_are_downloaded() -> None:
    data = bytes(range(256)) * 100
    scene = scene_with(data)
    answer = scene.client.get("/topics/t/raw?partition=0&offset=0&part=value")
    assert answer.data == data
    assert answer.headers["Content-Disposition"].startswith("attachment;")
    assert answer.mimetype == "application/octet-stream"
    assert scene.get("/topics/t/raw?partition=0&offset=7").status_code == 404


@pytest.mark.scenario("ops-50")
def test_a_tail_shows_what_came_and_counts_the_rest() -> None:
    scene = scene_with(b"before")
    page = scene.get(link(scene.get(MESSAGES).text, "Follow new messages")).text
    assert offsets(page) == []
    assert 'data-refresh="1"' in page
    scene.produce("t", *[b"m"] * 500)
    assert len(offsets(scene.get(f"{MESSAGES}?from=tail&at=1").text)) == 500
    scene.produce("t", *[b"m"] * 20)
    page = scene.get(f"{MESSAGES}?from=tail&at=1").text
    assert len(offsets(page)) == 500
    assert "20 messages that came meanwhile are left out" in text_of(page)


@pytest.mark.scenario("ops-49")
def test_from_now_on_the_page_follows() -> None:
    scene = scene_with(b"before")
    answer = scene.get(f"{MESSAGES}?from=tail")
    assert answer.status_code == 303
    page = answer.headers["Location"]
    assert "data-refresh" in scene.get(page).text and "before" not in scene.page(page)
    scene.produce("t", b"young")
    assert "young" in scene.page(page)


def test_reading_commits_nothing() -> None:
    scene = scene_with(b"m")
    writes = len(scene.server.writes)
    for kind in ("newest", "oldest", "tail&at=0"):
        scene.page(f"{MESSAGES}?from={kind}")
    assert scene.cluster.sent(schemas.OffsetCommitRequest) == []
    assert len(scene.server.writes) == writes
    assert {name for name, _ in scene.cluster.called} >= {"console-browser"}


@pytest.mark.parametrize(
    "query",
    [
        "from=offset&at=x",
        "from=when",
        "as=exec",
        "partition=x",
        "from=time&at=now",
        "from=offset&at=-1",
    ],
)
def test_a_wrong_field_is_named(query: str) -> None:
    assert scene_with(b"m").get(f"{MESSAGES}?{query}").status_code == 400


def test_contents_are_hidden_if_told() -> None:
    scene = scene_with(b"secret", show_messages=False)
    assert scene.get(MESSAGES).status_code == 403
    assert scene.get("/topics/t/raw?offset=0").status_code == 403
    assert "/messages" not in scene.get("/topics/t").text


def test_an_unknown_partition() -> None:
    assert scene_with(b"m").get(f"{MESSAGES}?partition=5").status_code == 404


def scene_with_headers() -> ConsoleScene:
    scene = scene_with()
    packed = [encode_headers([("trace", b"id-7"), ("bin", b"\xff")]), None]
    data = encode_records([b"with", b"without"], None, [1_700_000_000_000] * 2, packed)
    scene.cluster.store(TopicPartition("t", 0), data)
    return scene


def test_headers_are_shown_and_searched() -> None:
    scene = scene_with_headers()
    page = scene.page(MESSAGES)
    assert "trace id-7 4 bytes" in page and "bin 00000000 ff" in page
    for needle, wanted in (("trace", [0]), ("id-7", [0]), ("with", [0, 1]), ("none", [])):
        assert offsets(scene.get(f"{MESSAGES}?from=oldest&has={needle}").text) == wanted


def test_whose_time_a_message_has() -> None:
    page = scene_with_headers().page(MESSAGES)
    assert "2023-11-14 22:13:20 UTC by the producer" in page
    assert "by the producer" not in scene_with(b"of format 0").page(MESSAGES)


def test_a_page_is_downloaded() -> None:
    scene = scene_with_headers()
    page = scene.get(MESSAGES).text
    scene.produce("t", b"came later")
    for form in ("JSON", "NDJSON", "CSV"):
        answer = scene.get(link(page, form))
        assert answer.headers["Content-Disposition"].startswith("attachment;")
        assert "id-7" in answer.text and "without" in answer.text
    found = scene.get(link(page, "JSON")).get_json(force=True)
    assert [each["offset"] for each in found] == [1, 0]  # as on the page
    assert scene.get(f"{MESSAGES}?form=exe").status_code == 400


def test_a_long_value_opens_and_a_keyboard_reaches_it() -> None:
    page = scene_with(b'{"a": [1, 2]}', b"short").get(MESSAGES).text
    assert '<details><summary>{ &#34;a&#34;: [ 1, 2 ] }</summary><pre tabindex="0" ' in page
    assert ">short</code>" in page


def test_an_offset_that_the_log_has_no_more() -> None:
    scene = ConsoleScene()
    scene.topic("t", [1])
    scene.cluster.starts[scene.first("t")] = 7
    scene.produce("t", b"m")
    scene.look()
    told = "Offset 4 is not in the log any more: these begin at its start."
    assert told in scene.page("/topics/t/messages?from=offset&at=4")
    assert told not in scene.page("/topics/t/messages?from=offset&at=7")
