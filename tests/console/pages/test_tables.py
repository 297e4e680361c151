"""kafka08.console.pages.tables."""

from __future__ import annotations

import re

import pytest

from tests.console.scene import ConsoleScene


def scene_with_topics() -> ConsoleScene:
    scene = ConsoleScene()
    for name, count in (("a", 2), ("b", 7), ("c", 2), ("d", 0)):
        scene.topic(name, [1])
        scene.produce(name, *[b"m"] * count)
    scene.look()
    return scene


def names(page: str) -> list[str]:
    return re.findall(r'<td class="long"><a href="/topics/(\w)">', page)


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("", "abcd"),
        ("?sort=-name", "dcba"),
        ("?sort=messages", "dacb"),
        ("?sort=-messages", "bacd"),  # equal ones stay as they were
        ("?sort=-messages&name=c", "c"),
    ],
)
def test_rows_are_sorted_by_a_column(query: str, order: str) -> None:
    assert "".join(names(scene_with_topics().get(f"/topics{query}").text)) == order


def test_a_head_sorts_and_turns_round() -> None:
    scene = scene_with_topics()

    def head(page: str, title: str) -> tuple[str, str]:
        found = re.search(rf'<th([^>]*)><a href="([^"]*)">{title}</a>', page)
        assert found, page
        order = re.search('aria-sort="([^"]*)"', found[1])
        return order[1] if order else "", found[2].replace("&amp;", "&")

    page = scene.get("/topics?show=&name=").text
    order, link = head(page, "Messages")
    assert (order, link) == ("", "/topics?show=&name=&sort=-messages")  # the largest first
    page = scene.get(link).text
    order, link = head(page, "Messages")
    assert (order, link) == ("descending", "/topics?show=&name=&sort=messages")
    assert head(scene.get(link).text, "Messages")[0] == "ascending"
    assert head(page, "Topic") == ("", "/topics?show=&name=&sort=name")
    assert '<input type="hidden" name="sort" value="-messages">' in page  # a filter keeps it


def test_every_column_of_every_table() -> None:
    """Also with a broker that is down, and a topic whose messages are not known."""
    scene = scene_with_topics()
    scene.commit("g", "a", 1)
    scene.commit("h", "gone", 1)
    scene.cluster.down = {9092}
    scene.look()
    for path in ("/topics", "/brokers", "/groups"):
        page = scene.get(path).text
        links = re.findall(r'<th[^>]*><a href="([^"]*)">', page)
        assert len(links) > 6
        for link in links:
            for each in (link, link.replace("sort=-", "sort="), link.replace("sort=", "sort=-")):
                if "sort=--" not in each:
                    assert scene.get(each).status_code == 200, each


def test_an_unknown_column() -> None:
    answer = scene_with_topics().get("/topics?sort=colour")
    assert answer.status_code == 400
    assert "is not one of name, partitions" in answer.text


def test_a_row_of_a_topic_leads_to_its_messages() -> None:
    page = scene_with_topics().get("/topics").text
    assert '<a href="/topics/b/messages" aria-label="7 messages of b">7</a>' in page
    scene = ConsoleScene(show_messages=False)
    scene.topic("a", [1])
    scene.look()
    assert "/messages" not in scene.get("/topics").text


def test_heads_stay_on_top_where_the_page_scrolls() -> None:
    """A head sticks to the nearest box that scrolls, which must then be the page itself."""
    sheet = scene_with_topics().get("/static/console.css").text
    wide = sheet.partition("@media (min-width: 64rem) {")[2].partition("\n}")[0]
    assert re.search(r"main \{[^}]*overflow-x: visible", wide)
    head = re.search(r"thead th \{([^}]*)\}", wide)
    assert head and "position: sticky" in head[1] and "background: var(--back)" in head[1]
