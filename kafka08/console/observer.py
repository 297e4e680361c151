"""Reads the cluster at intervals, and keeps the last state for the pages."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from kafka08.client.cluster import ClusterClient
from kafka08.client.log_dirs import DiskUse, disk_use
from kafka08.common import TopicPartition
from kafka08.console.brokers.traffic import Traffic, TrafficMeter
from kafka08.console.cluster_state import ClusterState, StateReader
from kafka08.console.config import ConsoleConfig
from kafka08.console.failures.defaults import read_defaults
from kafka08.console.failures.transactional_ids import read_ids
from kafka08.console.failures.what_if import TopicDefaults
from kafka08.console.forms import in_words
from kafka08.console.history import History
from kafka08.console.timeline.timeline import Timeline
from kafka08.console.transactions import Held, TransactionAdmin, Transactions
from kafka08.errors import KafkaError
from kafka08.lag.collector import LagCollector, Lags
from kafka08.runtime import Runtime, Scheduler

logger = logging.getLogger("kafka.console.Observer")

TRAFFIC = "rate"
"""The series of all messages per second."""
_SLOW_EVERY = 3
"""Rounds, for disks and brokers' settings: a broker adds up the sizes of all its logs."""


class Past(NamedTuple):
    """Figures over time, and events."""

    history: History
    timeline: Timeline


class Observer:
    """Three loops: one for the state of the cluster, one for lag, open transactions and disks, one
    for bytes in and out. They never overlap themselves.

    ``state``, ``lags`` and ``transactions`` are those of the last successful read; ``error`` says
    why the last read failed, "" if it did not. ``rates``: messages per second by topic,
    ``partition_rates`` by partition.
    ``disks``: of the brokers that answered when they were last asked. ``defaults``: of topics
    without own settings, as the controller said then. ``transactional_ids``: how many each
    partition of ``__transaction_state`` kept then. ``traffic``: bytes per second when they
    were last read.
    """

    def __init__(
        self,
        reader: StateReader,
        collector: LagCollector,
        transactions: TransactionAdmin,
        past: Past,
        config: ConsoleConfig,
        cluster: ClusterClient,
        meter: TrafficMeter,
        runtime: Runtime,
    ) -> None:
        self.state: ClusterState | None = None
        self.lags: Lags | None = None
        self.transactions: Transactions | None = None
        self.disks = DiskUse()
        self.traffic = Traffic()
        self.defaults = TopicDefaults()
        self.transactional_ids: Mapping[int, int] = {}
        self.error = ""
        self.lag_error = ""
        self.rates: dict[str, float] = {}
        self.partition_rates: dict[TopicPartition, float] = {}
        self.history, self.timeline = past
        self._reader = reader
        self._collector = collector
        self._transactions = transactions
        self._config = config
        self._cluster = cluster
        self._meter = meter
        self._clock = runtime.clock
        self._where = f" ({config.zookeeper_connect})" if config.clusters else ""
        self._scheduler = Scheduler(runtime)
        self._slow_rounds = 0

    def start(self) -> None:
        self._scheduler.every("console-state", self._config.refresh_ms, self.look)
        self._scheduler.every("console-lag", self._config.lag_interval_ms, self.collect)
        self._scheduler.every("console-traffic", self._config.lag_interval_ms, self.measure)

    def stop(self) -> None:
        self._scheduler.stop(5.0)
        self.history.close()
        self.timeline.close()

    @property
    def has_looked(self) -> bool:
        """Whether the cluster was read, or could not be."""
        return self.state is not None or bool(self.error)

    def age_ms(self) -> int | None:
        """How old the state is; None before the first."""
        return None if self.state is None else self._clock.millis() - self.state.time_ms

    def held(self) -> Mapping[TopicPartition, Held]:
        """The partitions whose readers wait for a transaction; none before they are known."""
        return self.transactions.held if self.transactions else {}

    def look(self) -> None:
        """Read the state now."""
        try:
            self.state, self.error = self._reader.read(), ""
        except (OSError, KafkaError) as error:
            self.error = in_words(error)
            logger.warning("The state of the cluster%s cannot be read: %s", self._where, error)
            return
        self.timeline.saw(self.state)

    def collect(self) -> None:
        """Collect lag, and read the open transactions and the disks, now."""
        before = self.lags
        try:
            self.lags, self.lag_error = self._collector.collect(), ""
        except (OSError, KafkaError) as error:
            self.lag_error = in_words(error)
            logger.warning("Lag%s cannot be collected: %s", self._where, error)
            return
        self.partition_rates = _rates(before, self.lags)
        self.rates = _by_topic(self.partition_rates)
        self.history.note(self.lags.time_ms, _series(self.lags, self.rates))
        self.timeline.collected(self.lags)
        if self.state is not None:
            self.transactions = self._transactions.read(self.state, self.lags)
            if self._slow_rounds % _SLOW_EVERY == 0:
                self._read_disks(self.state, self.lags)
                self.defaults = read_defaults(self.state, self._ask)
                negotiating = partial(self._ask, api_versions=True)
                self.transactional_ids = read_ids(self.state, negotiating)
            self._slow_rounds += 1

    def measure(self) -> None:
        """Read what brokers have counted, now."""
        if self.state is not None:
            self.traffic = self._meter.read(self.state)

    def note_starts(self, starts: Mapping[TopicPartition, int]) -> None:
        """The starts of logs after messages were deleted; otherwise they are read now and then."""
        self._collector.note_starts(starts)
        if self.lags is not None:
            logs = {
                tp: log._replace(start=starts.get(tp, log.start))
                for tp, log in self.lags.logs.items()
            }
            self.lags = self.lags._replace(logs=logs)

    def _read_disks(self, state: ClusterState, lags: Lags) -> None:
        asked = {each.id for each in state.brokers.values() if each.serves_later_apis}
        self.disks = disk_use(self._cluster, [each for each in lags.brokers if each.id in asked])

    def _ask(self, broker_id: int, request: object, *, api_versions: bool = False) -> Any:
        broker = self._cluster.broker(broker_id)
        if broker is None:
            raise KafkaError(f"Broker {broker_id} is not up")
        return self._cluster.call(broker, request, api_versions=api_versions)


def _rates(before: Lags | None, now: Lags) -> dict[TopicPartition, float]:
    """Messages per second that came to each partition between two rounds."""
    if before is None or now.time_ms <= before.time_ms:
        return {}
    seconds = (now.time_ms - before.time_ms) / 1000
    rates: dict[TopicPartition, float] = {}
    for tp, log in now.logs.items():
        former = before.logs.get(tp)
        if former is not None and former.end is not None and log.end is not None:
            rates[tp] = max(log.end - former.end, 0) / seconds
    return rates


def _by_topic(rates: Mapping[TopicPartition, float]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for tp, rate in rates.items():
        sums[tp.topic] = sums.get(tp.topic, 0.0) + rate
    return sums


def _series(lags: Lags, rates: Mapping[str, float]) -> Mapping[str, float]:
    """The figures that are kept over time. A sum of which a part is unknown is left out."""
    silent = {tp.topic for tp, log in lags.logs.items() if log.end is None}
    series = {
        f"lag/{group}": float(found.total)
        for group, found in lags.groups.items()
        if not found.unknown
    }
    ends: dict[str, float] = {}
    for tp, log in lags.logs.items():
        if log.end is not None and tp.topic not in silent:
            ends[f"end/{tp.topic}"] = ends.get(f"end/{tp.topic}", 0.0) + log.end
    return {**series, **ends, **({TRAFFIC: sum(rates.values())} if rates else {})}
