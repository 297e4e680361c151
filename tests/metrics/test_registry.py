from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka08.metrics.meters import Meter
from kafka08.metrics.registry import AT_ONCE, GAUGE, METER, Beans, Metric, Registry, one, same
from tests.fakes.runtime import FakeRuntime

DEPTH = Metric("d:type=T,name=Depth", GAUGE, "depth", "How deep.", ("topic", "partition"))
SEEN = Metric("d:type=T,name=Seen", METER, "seen_total", "How many.", unit="things")
BY_BROKER = (("clientId", "{clientId}"), ("broker", "{host}:{port}"))
LINKS = Metric("d:type=T,name=L", GAUGE, "l", "x", ("clientId", "host", "port"), labels=BY_BROKER)


@pytest.fixture
def registry(runtime: FakeRuntime) -> Registry:
    return Registry(runtime)


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime()


def test_series_have_their_names(registry: Registry) -> None:
    registry.add(DEPTH, lambda: [(("", ""), 1), (("t", "0"), 2)])
    registry.add(LINKS, lambda: [(("c", "h", "1"), 3), (("c", "", ""), 4)])
    found = [series for _, piece in registry.pieces() for series in piece]
    assert [(each.bean, each.labels, each.value) for each in found] == [
        ("d:type=T,name=Depth", {}, 1),
        ("d:type=T,name=Depth,topic=t,partition=0", {"topic": "t", "partition": "0"}, 2),
        ("d:type=T,name=L,clientId=c,host=h,port=1", {"clientId": "c", "broker": "h:1"}, 3),
        ("d:type=T,name=L,clientId=c", {"clientId": "c"}, 4),
    ]


def test_long_families_come_in_pieces(registry: Registry) -> None:
    registry.add(DEPTH, lambda: ((("t", str(number)), number) for number in range(2 * AT_ONCE + 1)))
    assert [len(piece) for _, piece in registry.pieces()] == [AT_ONCE, AT_ONCE, 1]


def test_a_metric_that_fails_is_left_out_and_told_once(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> Iterator[tuple[tuple[str, ...], int]]:
        raise ValueError("why")

    registry.add(DEPTH, fail)
    registry.add(SEEN, same(Meter()))
    for _ in range(2):
        assert [metric.name for metric, _ in registry.pieces()] == ["seen_total"]
    assert caplog.messages == ["depth cannot be read"]


def test_a_tick_reaches_every_meter_once(registry: Registry, runtime: FakeRuntime) -> None:
    meter = Meter()
    registry.add(SEEN, same(meter))
    registry.add(SEEN._replace(name="again_total"), same(meter))
    registry.add(DEPTH, one(lambda: 1))
    meter.mark(20)
    runtime.clock.advance(10)
    registry.tick()
    assert meter.rates == (2.0, 2.0, 2.0)
    assert registry.age == 10


def test_two_metrics_of_one_name_are_a_mistake(registry: Registry) -> None:
    registry.add(DEPTH, one(lambda: 1))
    with pytest.raises(AssertionError):
        registry.add(DEPTH, one(lambda: 1))


def test_rates_are_computed_every_five_seconds(registry: Registry, runtime: FakeRuntime) -> None:
    meter = Meter()
    registry.add(SEEN, same(meter))
    registry.start()
    meter.mark(10)
    runtime.step("metrics")
    assert meter.rates == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("metric", "bean", "name"),
    [
        (Beans("kafka.log:type=Log").gauge("Size", ""), "Log,name=Size", "kafka_log_log_size"),
        (Beans("d:type=A-B").gauge("some-name", ""), "A-B,name=some-name", "d_a_b_some_name"),
        (Beans("d:type=T").meter("BytesPerSec", "", ""), "T,name=BytesPerSec", "d_t_bytes_total"),
        (Beans("d:type=T").meter("APerSecond", "", ""), "T,name=APerSecond", "d_t_a_total"),
        (Beans("d:type=T").percent("IdlePercent", ""), "T,name=IdlePercent", "d_t_idle_percent"),
        (Beans("d:type=T", sign=" ").gauge("some-of-it", ""), "T some-of-it", "d_t_some_of_it"),
    ],
)
def test_the_name_in_prometheus_follows_from_the_bean(metric: Metric, bean: str, name: str) -> None:
    assert (metric.bean.partition("type=")[2], metric.name) == (bean, name)


def test_a_sum_over_many_lets_others_run() -> None:
    runtime, seen = FakeRuntime(), []
    runtime.on_sleep = seen.append
    registry = Registry(runtime)
    assert registry.total(range(5000), lambda number: number) == sum(range(5000))
    assert seen == [0, 0]
    assert registry.total([], lambda number: number) == 0
    assert seen == [0, 0]
