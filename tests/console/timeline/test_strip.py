"""kafka08.console.timeline.strip."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.console.history import Point
from kafka08.console.timeline.happenings import (
    BROKER,
    GAP,
    GROUP,
    KINDS,
    TOPIC,
    Happening,
    happening,
)
from kafka08.console.timeline.strip import MARKS, concerning, graph_with_events

POINTS = [Point(0, 1), Point(400_000, 2), Point(800_000, 3)]


def event(time_ms: int, kind: str = TOPIC, text: str = "It happened", name: str = "t") -> Happening:
    return happening((time_ms - 5, time_ms), kind, text, [name])


def links(drawn: str) -> list[str]:
    return re.findall(r'<a href="([^"]*)" aria-label', drawn)


def test_a_mark_is_a_link_to_its_events_with_their_text() -> None:
    drawn = graph_with_events(POINTS, "Lag", [event(400_000), event(399_000, BROKER), event(0)])
    assert links(drawn) == [
        "/events?from=0&amp;to=0",
        "/events?from=399000&amp;to=399000",
        "/events?from=400000&amp;to=400000",
    ]
    assert 'class="broker" x="313"' in drawn and 'class="topic" x="321"' in drawn
    assert "<title>1970-01-01 00:06:40 UTC: It happened</title>" in drawn
    assert "<summary>3 events in this time</summary>" in drawn
    assert "<li>1970-01-01 00:06:40 UTC It happened</li>" in drawn


def test_events_that_are_close_share_a_mark() -> None:
    drawn = graph_with_events(POINTS, "Lag", [event(402_000, BROKER), event(401_000)])
    assert links(drawn) == ["/events?from=401000&amp;to=402000"]
    assert 'class="several"' in drawn
    assert "2 events until 1970-01-01 00:06:42 UTC: It happened" in drawn


def test_only_the_time_of_the_graph_is_shown() -> None:
    drawn = graph_with_events(POINTS[1:], "Lag", [event(800_001), event(399_999)])
    assert links(drawn) == []
    assert "Nothing happened in this time that the console saw." in drawn
    assert "second measurement" in graph_with_events(POINTS[:1], "Lag", [event(0)])
    both = [Point(5, 1), Point(5, 1)]
    assert len(links(graph_with_events(both, "Lag", [event(5)]))) == 1


def test_a_gap_is_shaded_and_breaks_the_line() -> None:
    gap = happening((500_000, 700_000), GAP, "not seen")
    drawn = graph_with_events(POINTS, "Lag", [gap])
    assert '<rect class="gap" x="400.0" y="0" width="160.0" height="24"/>' in drawn
    assert drawn.count("<polyline") == 2
    assert "<summary>1 event in this time</summary>" in drawn
    # One that began before the graph.
    earlier = happening((-900_000, 200_000), GAP, "not seen")
    assert '<rect class="gap" x="0.0" y="0" width="160.0"' in graph_with_events(
        POINTS, "Lag", [earlier]
    )


def test_long_lists_are_cut() -> None:
    drawn = graph_with_events(POINTS, "Lag", [event(n) for n in range(100, 0, -1)])
    assert drawn.count("<li>") == 20
    assert "<summary>100 events in this time</summary>" in drawn
    assert 'href="/events?from=0&amp;to=800000">All events of this time' in drawn


def test_names_are_never_markup() -> None:
    drawn = graph_with_events(POINTS, "<b>", [event(5, text='<i>"&')])
    assert "<i>" not in drawn and "<b>" not in drawn
    assert "&lt;i&gt;&#34;&amp;" in drawn


@pytest.mark.parametrize(
    ("found", "concerns"),
    [
        (event(1, GROUP, name="g"), True),
        (event(1, GROUP, name="other"), False),
        (event(1, TOPIC, name="t"), True),
        (event(1, BROKER, name="broker 1"), True),
        (happening((1, 2), GAP, "x"), True),
        (Happening(2, 1, TOPIC, "x", ("a",), 1), True),
    ],
)
def test_what_concerns_a_group(found: Happening, concerns: bool) -> None:
    assert concerning("g", "t")(found) is concerns


@given(
    st.lists(st.integers(0, 10**9), min_size=2, max_size=9, unique=True),
    st.lists(
        st.tuples(st.integers(0, 10**9), st.integers(0, 10**9), st.sampled_from(sorted(KINDS))),
        max_size=200,
    ),
)
def test_whatever_happened_the_strip_stays_small_and_inside(
    times: list[int], rows: list[tuple[int, int, str]]
) -> None:
    points = [Point(time, 1.0) for time in sorted(times)]
    events = [happening((min(row[:2]), max(row[:2])), row[2], "x") for row in rows]
    events.sort(key=lambda each: -each.time_ms)
    drawn = graph_with_events(points, "Lag", events)
    root = ElementTree.fromstring(f"<div>{drawn}</div>")
    rects = list(root.iter("rect"))
    marks = [each for each in rects if each.get("class") != "gap"]
    assert len(marks) <= MARKS
    for rect in rects:
        x, width = float(rect.get("x", "")), float(rect.get("width", ""))
        assert 0 <= x <= 640 and width > 0 and x + width <= 641.1
    assert len(list(root.iter("li"))) <= 20
