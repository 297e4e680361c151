from __future__ import annotations

import pytest

from kafka08.metrics.jmx import attributes, bean_pattern
from kafka08.metrics.meters import Histogram, IdleShare, Meter, Timer
from kafka08.metrics.names import TOPICS
from kafka08.metrics.registry import GAUGE, HISTOGRAM, METER, PERCENT, TIMER, Metric, Series

RATES = ["Count", "MeanRate", "OneMinuteRate", "FiveMinuteRate", "FifteenMinuteRate"]
KINDS = [*RATES, "EventType", "RateUnit"]
DISTRIBUTION = [
    *("Count", "Min", "Max", "Mean", "StdDev", "50thPercentile", "75thPercentile"),
    *("95thPercentile", "98thPercentile", "99thPercentile", "999thPercentile"),
]


def series(kind: str, value: object) -> Series:
    return Series(Metric("d:type=T,name=N", kind, "n", "x", unit="things"), {}, value)


@pytest.mark.scenario("ops-18")
@pytest.mark.parametrize(
    ("kind", "value", "names"),
    [
        (GAUGE, 1, ["Value"]),
        (METER, Meter(), KINDS),
        (HISTOGRAM, Histogram(), DISTRIBUTION),
        (TIMER, Timer(), [*DISTRIBUTION, *KINDS[1:], "LatencyUnit"]),
        (PERCENT, IdleShare(), KINDS),
    ],
)
def test_beans_have_the_attributes_of_their_kind(
    kind: str, value: object, names: list[str]
) -> None:
    assert list(attributes(series(kind, value), 1.0)) == names


def test_the_values_of_a_meter() -> None:
    meter = Meter()
    meter.mark(20)
    meter.tick()
    found = attributes(series(METER, meter), 10.0)
    assert found["Count"] == 20
    assert (found["MeanRate"], found["OneMinuteRate"]) == (2.0, 4.0)
    assert (found["EventType"], found["RateUnit"]) == ("things", "SECONDS")


def test_the_rates_of_a_share_are_shares() -> None:
    idle = IdleShare()
    idle.tick(1000.0)
    found = attributes(series(PERCENT, idle), 1000.0)
    assert 0.9 < found["OneMinuteRate"] <= 1.0
    assert (found["EventType"], found["RateUnit"]) == ("percent", "NANOSECONDS")


BEAN = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=a[b]"


@pytest.mark.scenario("ops-18")
@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("*:*", True),
        (BEAN, True),
        ("kafka.server:type=BrokerTopicMetrics,*", True),
        ("kafka.*:name=Bytes*,*", True),
        ("kafka.server:topic=a[b],type=BrokerTopicMetrics,name=BytesInPerSec", True),
        ("kafka.serve?:type=*,name=*,topic=*", True),
        ("kafka.server:type=BrokerTopicMetrics", False),
        ("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec", False),
        ("kafka.log:*", False),
        ("kafka.server:topic=ab,*", False),
        ("kafka.server:partition=*,*", False),
    ],
)
def test_patterns(pattern: str, fits: bool) -> None:
    assert bean_pattern(pattern).fits(BEAN) is fits


@pytest.mark.parametrize("pattern", ["", "kafka", "kafka.server", ":type=T", "d:", "d:x", "d:,"])
def test_other_texts_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"^not a bean's name or pattern"):
        bean_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "may"),
    [
        ("*:*", True),
        ("kafka.server:type=BrokerTopicMetrics,name=Bytes*PerSec,*", True),
        ("kafka.server:topic=t,*", True),
        ("kafka.server:type=BrokerTopicMetrics", True),
        ("kafka.server:type=BrokerTopicMetrics,name=Messages*,*", False),
        ("kafka.server:partition=0,*", False),
        ("kafka.log:*", False),
    ],
)
def test_a_pattern_says_which_metrics_need_not_be_looked_at(pattern: str, may: bool) -> None:
    assert bean_pattern(pattern).may_fit(TOPICS["bytes_in"]) is may
