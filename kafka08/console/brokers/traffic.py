"""Bytes in and out per second of brokers and topics, from what brokers have counted.

Brokers of 0.8.2.2 have their counts in JMX alone: theirs are not known.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from kafka08.console.brokers.byte_counts import ALL_TOPICS, PATH, ByteCounts, byte_counts
from kafka08.console.brokers.http_pages import BrokerPages
from kafka08.console.cluster_state import BrokerView, ClusterState, TopicView
from kafka08.errors import KafkaError
from kafka08.runtime import Runtime, Tasks

logger = logging.getLogger("kafka.console.Traffic")


class Rates(NamedTuple):
    """Bytes per second: from producers, and to consumers, without followers."""

    bytes_in: float
    bytes_out: float


class Traffic(NamedTuple):
    """``brokers`` and ``topics``: those whose rates are known. ``reasons``: why those of a live
    broker are not."""

    brokers: Mapping[int, Rates] = {}
    topics: Mapping[str, Rates] = {}
    reasons: Mapping[int, str] = {}

    @property
    def total(self) -> Rates | None:
        """Of the brokers whose rates are known, None if there is none."""
        return _sum(list(self.brokers.values()))

    def of(self, broker: BrokerView) -> Rates | None:
        """None if they are not known."""
        return self.brokers.get(broker.id) if broker.is_live else None

    def why_not(self, broker: BrokerView) -> str | None:
        """Why the rates of a broker are not known, None if they are."""
        if not broker.is_live:
            return "the broker is down"
        if broker.id in self.brokers:
            return None
        return self.reasons.get(broker.id, "its counts have not been read yet")


class _Sample(NamedTuple):
    """``at``: seconds of the monotonic clock."""

    at: float
    counts: ByteCounts


class TrafficMeter:
    """Brokers are asked side by side: one that does not answer holds up nobody. One task at a
    time."""

    def __init__(self, pages: BrokerPages, runtime: Runtime) -> None:
        self._pages = pages
        self._runtime = runtime
        self._before: dict[int, _Sample] = {}

    def read(self, state: ClusterState) -> Traffic:
        """The rates since the last call. A broker that was not read then has none yet."""
        samples: dict[int, _Sample] = {}
        reasons: dict[int, str] = {}
        tasks = Tasks(self._runtime)
        for broker in state.live:
            tasks.begin(f"console-traffic-{broker.id}", self._ask, broker, samples, reasons)
        tasks.join()
        before, self._before = self._before, samples
        rates: dict[int, dict[str, Rates]] = {}
        for id_, sample in samples.items():
            former = before.get(id_)
            if former is None or sample.at <= former.at:
                reasons[id_] = "its counts were read only once so far"
            else:
                rates[id_] = _rates(former, sample)
        found = {
            topic: known
            for topic, view in state.topics.items()
            if (known := _of_topic(topic, view, rates))
        }
        totals = {id_: of[ALL_TOPICS] for id_, of in rates.items()}
        return Traffic(totals, found, reasons)

    def _ask(
        self, broker: BrokerView, samples: dict[int, _Sample], reasons: dict[int, str]
    ) -> None:
        try:
            counts = byte_counts(self._pages.read(broker, PATH))
        except KafkaError as error:
            reasons[broker.id] = str(error)
            logger.info("Bytes in and out of broker %d are not known: %s", broker.id, error)
        else:
            samples[broker.id] = _Sample(self._runtime.clock.monotonic(), counts)


def _rates(former: _Sample, now: _Sample) -> dict[str, Rates]:
    """By topic. Counts that fell are those of a broker that has started since: it began at 0."""
    seconds = now.at - former.at
    pairs = list(zip(former.counts, now.counts, strict=True))
    if any(after[ALL_TOPICS] < before[ALL_TOPICS] for before, after in pairs):
        pairs = [({}, after) for _, after in pairs]

    def rate(pair: tuple[Mapping[str, int], Mapping[str, int]], topic: str) -> float:
        before, after = pair[0].get(topic, 0), pair[1].get(topic, 0)
        # The counts of a topic that was deleted and made again begin at 0 too.
        return (after - before if after >= before else after) / seconds

    topics = {topic for counts in now.counts for topic in counts}
    return {topic: Rates(*(rate(pair, topic) for pair in pairs)) for topic in topics}


def _of_topic(
    topic: str, view: TopicView, rates: Mapping[int, Mapping[str, Rates]]
) -> Rates | None:
    """None unless the rates of all its leaders are known: all its bytes come and go there."""
    leaders = {each.leader for each in view.partitions.values() if not each.is_offline}
    if not leaders or not leaders <= rates.keys():
        return None
    none = Rates(0.0, 0.0)
    return _sum([of.get(topic, none) for of in rates.values()])


def _sum(rates: list[Rates]) -> Rates | None:
    if not rates:
        return None
    return Rates(sum(each.bytes_in for each in rates), sum(each.bytes_out for each in rates))
