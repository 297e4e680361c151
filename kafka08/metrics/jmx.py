"""Metrics under the names and attributes of 0.8.2.2's JMX beans, and patterns over these names."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from kafka08.metrics.meters import Histogram, Meter
from kafka08.metrics.registry import GAUGE, HISTOGRAM, METER, PERCENT, TEXT, Metric, Series

_SHARES = {
    "50thPercentile": 0.5,
    "75thPercentile": 0.75,
    "95thPercentile": 0.95,
    "98thPercentile": 0.98,
    "99thPercentile": 0.99,
    "999thPercentile": 0.999,
}


def attributes(series: Series, age: float) -> dict[str, object]:
    """The attributes of a bean; ``age``: seconds since counting began."""
    metric, value = series.metric, series.value
    if metric.kind in (GAUGE, TEXT):
        return {"Value": value}
    if metric.kind == HISTOGRAM:
        return {**_distribution(value)}
    if metric.kind == METER:
        return _rates(value, age, metric.unit)
    if metric.kind == PERCENT:
        return {**_rates(value.meter, age, "percent"), "RateUnit": "NANOSECONDS"} | {
            name: rate / 1e9 for name, rate in _moving(value.meter, age).items()
        }
    return {
        **_distribution(value.times),
        **_rates(value.meter, age, metric.unit),
        "LatencyUnit": "MILLISECONDS",
    }


def _moving(meter: Meter, age: float) -> dict[str, float]:
    one, five, fifteen = meter.rates or (0.0, 0.0, 0.0)
    return {
        "MeanRate": meter.count / age,
        "OneMinuteRate": one,
        "FiveMinuteRate": five,
        "FifteenMinuteRate": fifteen,
    }


def _rates(meter: Meter, age: float, unit: str) -> dict[str, object]:
    return {
        "Count": meter.count,
        **_moving(meter, age),
        "EventType": unit,
        "RateUnit": "SECONDS",
    }


def _distribution(values: Histogram) -> dict[str, float]:
    return {
        "Count": values.count,
        "Min": values.min,
        "Max": values.max,
        "Mean": values.mean,
        "StdDev": values.deviation,
        **dict(zip(_SHARES, values.quantiles(tuple(_SHARES.values())), strict=True)),
    }


class BeanPattern(NamedTuple):
    """Bean names as javax.management.ObjectName describes them: ``*`` and ``?`` in the domain and
    in values. ``is_open``: beans may have further properties."""

    domain: str
    properties: Mapping[str, str]
    is_open: bool

    def fits(self, bean: str) -> bool:
        domain, has = _parts(bean)
        if not self._has_domain(domain) or not self.properties.keys() <= has.keys():
            return False
        if not self.is_open and len(has) != len(self.properties):
            return False
        return self._have_values(has)

    def may_fit(self, metric: Metric) -> bool:
        """Whether a series of the metric can fit. It tells without looking at each of them."""
        domain, has = _parts(metric.bean)
        if not self._has_domain(domain):
            return False
        return self.properties.keys() <= {*has, *metric.tags} and self._have_values(has)

    def _has_domain(self, domain: str) -> bool:
        return fnmatchcase(domain, _literal(self.domain))

    def _have_values(self, has: Mapping[str, str]) -> bool:
        wanted = self.properties
        return all(fnmatchcase(has[key], _literal(wanted[key])) for key in wanted.keys() & has)


def bean_pattern(text: str) -> BeanPattern:
    """``*`` among the properties stands for any further ones. Raises ValueError."""
    domain, colon, rest = text.partition(":")
    wanted = [each for each in rest.split(",") if each]
    if not colon or not domain or not wanted or not all("=" in w or w == "*" for w in wanted):
        raise ValueError(f"not a bean's name or pattern: {text}")
    properties = dict(each.split("=", 1) for each in wanted if each != "*")
    return BeanPattern(domain, properties, "*" in wanted)


def _parts(bean: str) -> tuple[str, dict[str, str]]:
    domain, _, listed = bean.partition(":")
    return domain, dict(each.split("=", 1) for each in listed.split(",") if "=" in each)


def _literal(pattern: str) -> str:
    """Brackets have no meaning in these patterns, but one for fnmatch."""
    return pattern.replace("[", "[[]")
