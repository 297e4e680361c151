"""Tables, a picture and a verdict from the numbers of clients and brokers."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from integration.bench import hour, lines
from integration.bench.hour import Look, Phase
from integration.bench.hour_load import HEAD, Interval, Seen, Spread, Stretch, Told, heads, spoken
from integration.bench.lines import Panel

ORDERS = ("orders", 0)


@pytest.mark.parametrize("part", [0.5, 0.99, 0.999])
def test_a_share_is_two_percent_too_large_at_most(part: float) -> None:
    spread = Spread()
    times = [0.0005 * number for number in range(1, 1001)]
    for each in times:
        spread.add(each)
    exact = times[int(part * 1000) - 1]
    assert exact <= spread.share(part) <= 1.021 * exact


def test_nothing_counted_has_no_latency() -> None:
    assert Spread().share(0.5) == 0.0


def test_spreads_are_merged_by_their_counts() -> None:
    samples = [Stretch(at, "produce", {10: 1, 20: 2}) for at in (1.0, 2.0)]
    assert hour.merged(samples).counts == {10: 2, 20: 4}


def test_numbers_may_come_in_any_order() -> None:
    seen = Seen()
    for number in (0, 3, 1, 2, 2):
        seen.add(number)
    assert (seen.end, seen.skipped, seen.again) == (4, set(), 1)


def test_a_number_that_never_comes_is_missing() -> None:
    seen = Seen()
    for number in (0, 2):
        seen.add(number)
    assert seen.skipped == {1}


def test_errors_of_a_consumer_are_no_messages() -> None:
    def message(error: object, value: bytes) -> SimpleNamespace:
        fields = {"error": error, "value": value, "topic": "orders", "partition": 0}
        return SimpleNamespace(**{name: lambda v=v: v for name, v in fields.items()})

    given = [message("down", b""), message(None, HEAD.pack(7, 1.5) + b"text")]
    assert list(heads(given)) == [(*ORDERS, 7, 1.5)]


def test_an_interval_tells_once_and_begins_again() -> None:
    class Kept(list[Stretch]):
        def put(self, told: Stretch) -> None:
            self.append(told)

    out = Kept()
    interval = Interval("produce", out)
    interval.add(0.001)
    interval.tell(0.0)
    assert out == []
    interval.tell(5.0, at_once=True)
    interval.tell(6.0, at_once=True)
    assert [sum(each.counts.values()) for each in out] == [1, 0]


def test_only_clients_of_0_8_do_not_ask_for_versions() -> None:
    assert spoken(False) == {}
    assert spoken(True)["api.version.request"] is False


def told(
    written: int = 5, read: int = 5, *, failed: int = 0, missing: int = 0, again: int = 0
) -> list[Told]:
    return [
        Told("produce", {ORDERS: written}, failed),
        Told("end to end", {ORDERS: read}, missing, again),
        Told("end to end", {}),
    ]


def test_records_that_came_again_are_no_loss() -> None:
    assert hour.verdict(told(again=3)) == []


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (told(read=4), "('orders', 0): 5 were acknowledged, 4 read"),
        (told(missing=1), "1 records were never read"),
        (told(failed=2), "2 records were not acknowledged"),
        (told()[:2], "2 clients have told of 1 and 1 partitions"),
        ([*told()[:1], Told("end to end", {}), Told("end to end", {})], "3 clients have told"),
    ],
)
def test_each_fault_is_said(found: Sequence[Told], wrong: str) -> None:
    assert any(wrong in line for line in hour.verdict(found))


def watched() -> tuple[hour.Watch, list[Phase]]:
    phases = [Phase("begin", 0, 10), Phase("load", 10, 30), Phase(hour.LOST, 30, 31)]
    phases.append(Phase("load to the end", 31, 50))
    watch = hour.Watch([], None)
    watch.looks = {
        2: [Look(at, at / 2, 50_000_000, 40, 1_000_000) for at in (12.0, 20.0, 28.0, 32.0, 48.0)]
    }
    watch.samples = [
        Stretch(at, kind, {-300: 2}) for at in (15.0, 45.0) for kind in ("produce", "end to end")
    ]
    return watch, phases


def test_tables_have_a_row_for_each_phase_and_broker() -> None:
    watch, phases = watched()
    by_phase = hour.latency_table(watch, phases).splitlines()
    assert [row.split(" | ")[0] for row in by_phase[2:]] == [
        "| begin",
        "| load",
        "| a lost disk",
        "| load to the end",
        "| all",
    ]
    assert by_phase[3].count("2.68") == 6
    assert hour.broker_table(watch, phases).splitlines()[2:] == [
        "| 2 | 50, then 50 | 50, then 50 | 40, then 40 |"
    ]


def test_the_picture_has_every_panel_and_mark() -> None:
    watch, phases = watched()
    root = ElementTree.fromstring(hour.picture(watch, phases, "an hour"))
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"produce, ms", "end to end, ms", "CPU, % of a core", "memory, MB"} <= set(texts)
    assert {"descriptors", "disk, MB", hour.LOST, "broker 2", "p99.9", "0 min"} <= set(texts)


def test_on_a_scale_of_factors_equal_steps_are_equal_factors() -> None:
    panel = Panel("ms", {"p50": [(0.0, 1.0), (30.0, 10.0), (60.0, 100.0)]}, is_log=True)
    root = ElementTree.fromstring(lines.svg("", [panel], []))
    [line] = root.iter("{http://www.w3.org/2000/svg}polyline")
    heights = [float(point.split(",")[1]) for point in line.attrib["points"].split()]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2])


def test_of_many_points_the_largest_are_drawn() -> None:
    points = [(float(at), float(at % 10)) for at in range(95)]
    assert lines.peaks(points, 10) == [(9.0 + 10 * n, 9.0) for n in range(9)] + [(94.0, 4.0)]
    assert lines.peaks(points[:7], 10) == points[:7]


def test_clients_of_a_kind_are_drawn_as_one() -> None:
    watch = hour.Watch([], None)
    watch.samples = [
        Stretch(at, kind, {bucket: 1})
        for at, kind, bucket in (
            (104.9, "produce", 1),
            (105.2, "end to end", 2),
            (105.1, "end to end", 3),
            (110.0, "end to end", 4),
        )
    ]
    found = hour.together(watch, "end to end", 100.0)
    assert [(at, dict(spread.counts)) for at, spread in found] == [
        (5.0, {2: 1, 3: 1}),
        (10.0, {4: 1}),
    ]
