"""kafka08.console.shown."""

from __future__ import annotations

import pytest

from kafka08.console import shown
from kafka08.console.history import Point


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (12345, "12,345"), (1.25, "1.2"), (12345.6, "12,346")]
)
def test_numbers(value: float | None, text: str) -> None:
    assert shown.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 50, "1024.0 TiB")]
)
def test_sizes(value: int | None, text: str) -> None:
    assert shown.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 B/s"), (0.2, "under 1 B/s"), (511.6, "512 B/s"), (3 << 19, "1.5 MiB/s")],
)
def test_rates(value: float, text: str) -> None:
    assert shown.rate(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0 s"), (61, "1 min 1 s"), (3600, "1 h"), (90061, "1 d 1 h"), (-5, "0 s")],
)
def test_durations(value: float | None, text: str) -> None:
    assert shown.duration(value) == text


def test_moments() -> None:
    assert shown.moment(1400000000000) == "2014-05-13 16:53:20 UTC"
    assert shown.moment(None) == "-"
    assert shown.moment(1 << 62) == f"{1 << 62} ms"


def test_a_graph_is_drawn_from_two_points_on() -> None:
    assert "second measurement" in shown.graph([Point(0, 1)], "x")
    drawn = shown.graph([Point(0, 0), Point(1000, 50), Point(2000, 100)], '<b>"x"')
    assert 'points="0.0,160.0 320.0,80.0 640.0,0.0"' in drawn
    assert "<b>" not in drawn


@pytest.mark.parametrize(
    ("largest", "axis"),
    [
        (0, ("1", "0.5")),
        (0.03, ("0.04", "0.02")),
        (1, ("1", "0.5")),
        (7, ("10", "5")),
        (56, ("60", "30")),
        (1001, ("2,000", "1,000")),
        (123_456, ("200,000", "100,000")),
    ],
)
def test_the_axis_of_values_ends_at_a_round_number(largest: float, axis: tuple[str, str]) -> None:
    drawn = shown.graph([Point(0, 0), Point(60_000, largest)], "x")
    top, half = axis
    assert f"<span>{top}</span><span>{half}</span><span>0</span>" in drawn
    times = "".join(f"<span>1970-01-01 00:{at} UTC</span>" for at in ("00:00", "00:30", "01:00"))
    assert f'<div class="times">{times}</div>' in drawn


def test_the_time_of_a_moment() -> None:
    assert shown.time_of(shown.moment(1400000000000)) == 1400000000000
    assert shown.time_of("-") is None
    assert shown.time_of("2026-13-45 00:00:00 UTC") is None


def test_a_graph_is_broken_where_nothing_was_measured() -> None:
    points = [Point(n * 1_000_000, 1) for n in range(4)]
    drawn = shown.graph(points, "x", [(1_100_000, 1_900_000)])
    assert 'points="0.0,0.0 213.3,0.0"' in drawn and 'points="426.7,0.0 640.0,0.0"' in drawn
    # A point between two gaps is a dot.
    drawn = shown.graph(points, "x", [(100_000, 900_000), (1_100_000, 1_900_000)])
    assert 'points="213.3,0.0 213.3,0.0"' in drawn
    # Points within it: they were measured all the same.
    assert shown.graph(points, "x", [(0, 3_000_000)]).count("<polyline") == 1
    assert shown.graph(points, "x", [(-9, 0), (3_000_000, 9_000_000)]).count("<polyline") == 1
