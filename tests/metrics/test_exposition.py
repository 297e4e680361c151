from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.metrics.exposition import OPEN, PLAIN, Exposition
from kafka08.metrics.meters import Histogram, IdleShare, Meter, Timer
from kafka08.metrics.registry import (
    AT_ONCE,
    GAUGE,
    HISTOGRAM,
    METER,
    PERCENT,
    TEXT,
    TIMER,
    Beans,
    Metric,
    Registry,
    one,
    same,
)
from tests.fakes.runtime import FakeRuntime

pytest.importorskip("prometheus_client")

from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_plain

READERS = {PLAIN: read_plain, OPEN: read_open}
TOPICS = ("topic",)


class ExposedRegistry:
    def __init__(self) -> None:
        self.runtime = FakeRuntime()
        self.registry = Registry(self.runtime)
        self.exposition = Exposition(self.runtime, self.registry)

    def samples(self, form: str = PLAIN) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """Checks that no series is there twice."""
        text = self.exposition.text(form).decode()
        found: dict[Any, float] = {}
        for family in READERS[form](text):
            for sample in family.samples:
                key = sample.name, tuple(sorted(sample.labels.items()))
                assert key not in found
                found[key] = sample.value
        return found


@pytest.fixture
def world() -> ExposedRegistry:
    return ExposedRegistry()


@pytest.mark.scenario("ops-1")
@pytest.mark.parametrize("form", [PLAIN, OPEN])
def test_every_kind(world: ExposedRegistry, form: str) -> None:
    meter, histogram, timer = Meter(), Histogram(), Timer()
    meter.mark(7)
    histogram.update(5)
    timer.record(0.002)
    add = world.registry.add
    add(Metric("a:name=g", GAUGE, "g", "A gauge."), one(lambda: 3))
    add(Metric("a:name=m", METER, "m_total", "A meter.", TOPICS), lambda: [(("t",), meter)])
    add(Metric("a:name=h", HISTOGRAM, "h", "A histogram."), same(histogram))
    add(Metric("a:name=t", TIMER, "ms", "A timer."), same(timer))
    add(Metric("a:name=p", PERCENT, "idle_percent", "A share."), same(IdleShare()))
    add(Metric("a:name=v", TEXT, "version", "A text."), one(lambda: "1.2"))
    found = world.samples(form)
    assert found[("g", ())] == 3
    assert found[("m_total", (("topic", "t"),))] == 7
    assert found[("h", (("quantile", "0.999"),))] == 5
    assert (found[("h_count", ())], found[("h_sum", ())]) == (1, 5)
    assert (found[("ms_count", ())], found[("ms_sum", ())]) == (1, 2)
    assert found[("idle_percent", ())] == 1
    assert found[("version", (("version", "1.2"),))] == 1
    assert any(name.startswith("python_gc_") for name, _ in found)


@pytest.mark.scenario("ops-15")
def test_open_metrics_end_once(world: ExposedRegistry) -> None:
    world.registry.add(Metric("a:name=g", GAUGE, "g", "A gauge."), one(lambda: 3))
    text = world.exposition.text(OPEN)
    assert text.endswith(b"\n# EOF\n")
    assert text.count(b"# EOF") == 1


@pytest.mark.scenario("ops-12")
@pytest.mark.parametrize("form", [PLAIN, OPEN])
def test_a_family_in_pieces_has_one_head(world: ExposedRegistry, form: str) -> None:
    metric = Metric("a:name=m", METER, "m_total", "A meter.", TOPICS)
    meters = {f"t{number}": Meter() for number in range(AT_ONCE + 1)}
    world.registry.add(metric, lambda: [((name,), meter) for name, meter in meters.items()])
    assert len([name for name, _ in world.samples(form) if name == "m_total"]) == AT_ONCE + 1
    assert world.exposition.text(form).count(b"# TYPE m") == 1


@pytest.mark.scenario("ops-16")
@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_any_text_comes_back_as_a_label(text: str) -> None:
    world = ExposedRegistry()
    metric = Metric("a:name=c", GAUGE, "c", "A gauge.", ("clientId",))
    world.registry.add(metric, lambda: [((text,), 1)])
    assert world.samples()[("c", (("clientId", text),))] == 1


def test_the_answer_of_the_last_second_is_given_again(world: ExposedRegistry) -> None:
    asked: list[int] = []
    world.registry.add(
        Metric("a:name=g", GAUGE, "g", "A gauge."), one(lambda: asked.append(1) or len(asked))
    )
    first = world.exposition.text(PLAIN)
    world.runtime.clock.advance(0.9)
    assert world.exposition.text(PLAIN) is first
    assert world.exposition.text(OPEN) != first
    world.runtime.clock.advance(0.2)
    assert b"\ng 3.0\n" in world.exposition.text(PLAIN)


def test_the_names_of_the_beans(world: ExposedRegistry) -> None:
    """Dashboards were made for several sets of rules. Those that keep the beans' names ask for
    counts without _total and for shares without an underline."""
    meter, idle = Meter(), IdleShare()
    meter.mark(3)
    bytes_in = Beans("kafka.server:type=BrokerTopicMetrics", "topic").meter("BytesInPerSec", "", "")
    topics = [(("",), meter), *(((f"t{number}",), meter) for number in range(2 * AT_ONCE))]
    world.registry.add(bytes_in, lambda: topics)
    world.registry.add(
        Beans("kafka.network:type=SocketServer").percent("IdlePercent", ""), same(idle)
    )
    world.registry.add(Beans("kafka.log:type=Log").gauge("Size", ""), one(lambda: 7))
    plain = world.samples()
    world.exposition = Exposition(world.runtime, world.registry, bean_names=True)
    for form in (PLAIN, OPEN):
        both = world.samples(form)
        more = {name for name, _ in both} - {name for name, _ in plain}
        prefix = "kafka_server_brokertopicmetrics_bytesin"
        assert more == {f"{prefix}persec", "kafka_network_socketserver_idlepercent"}
        assert both[f"{prefix}persec", (("topic", "t0"),)] == both[f"{prefix}_total", ()] == 3
        assert len([name for name, _ in both if name == f"{prefix}persec"]) == len(topics)


def test_partitions_are_left_out(world: ExposedRegistry) -> None:
    log = Beans("kafka.log:type=Log", "topic", "partition").gauge("Size", "")
    asked: list[int] = []
    world.registry.add(log, lambda: [(("t", "0"), asked.append(1) or 7)])
    world.registry.add(Beans("kafka.log:type=All").gauge("Size", ""), one(lambda: 7))
    assert (("kafka_log_log_size", (("partition", "0"), ("topic", "t"))) in world.samples()) == 1
    world.exposition = Exposition(world.runtime, world.registry, partitions=False)
    asked.clear()
    found = {name for name, _ in world.samples()}
    assert "kafka_log_all_size" in found and "kafka_log_log_size" not in found
    assert not asked  # thousands would take their time
