"""Where the values of a broker's metrics come from: each part keeps its own counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from kafka08.cluster.partition import Partition
from kafka08.common import TopicPartition
from kafka08.controller.context import LeaderAndIsr
from kafka08.controller.controller import Controller
from kafka08.controller.states import PartitionState
from kafka08.log.disk import UNKNOWN, space
from kafka08.log.log import Log
from kafka08.log.manager import LogManager
from kafka08.metrics import names
from kafka08.metrics.meters import Histogram, IdleShare, Meter
from kafka08.metrics.registry import Metric, Registry, Source, one, same
from kafka08.metrics.requests import PARTS, RequestMetrics
from kafka08.metrics.topics import KINDS
from kafka08.network.server import Server
from kafka08.runtime import Clock
from kafka08.server.groups.offset_manager import OffsetManager
from kafka08.server.monitoring.directories import FAILED, FULL, directories, sizes, states
from kafka08.server.monitoring.health import Health
from kafka08.server.replication.fetchers import FetcherStats, ReplicaFetcher, ReplicaFetcherManager
from kafka08.server.replication.isr import IsrMaintenance
from kafka08.server.requests.purgatory import Purgatory
from kafka08.server.storage.replica_manager import ReplicaManager

if TYPE_CHECKING:
    from kafka08.log.cleaning.cleaner import LogCleaner

_CLIENT = "Replica"
_LOOP = "0"  # the number of the only processor


def add_process(registry: Registry) -> None:
    """The version, and how busy the event loop is."""
    registry.add(names.VERSION, one(_version))
    idle = IdleShare()
    registry.add(names.NETWORK_IDLE, same(idle))
    registry.add(names.PROCESSOR_IDLE, lambda: [((_LOOP,), idle)])
    registry.add(names.HANDLER_IDLE, same(idle))


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # 8 ms, when it is read

    try:
        return version("kafka08")
    except PackageNotFoundError:
        return "unknown"


def add_checks(health: Health, replicas: ReplicaManager, manager: LogManager) -> None:
    """The reasons for which a running broker is not ready, and what else there is to say."""

    def listed(reason: str, paths: Iterable[str]) -> str:
        names = ", ".join(sorted(paths))
        return f"{reason}: {names}" if names else ""

    health.add_check(lambda: "ZooKeeper is out of reach" if replicas.fenced else "")
    health.add_check(lambda: listed("data directories have failed", manager.failed_dirs))
    health.add_warning(lambda: listed("data directories are full", manager.full_dirs))
    health.shows("directories", lambda: [each._asdict() for each in directories(manager)])


def add_logs(registry: Registry, manager: LogManager) -> None:
    def of_each(read: Callable[[Log], object]) -> Source:
        return lambda: (
            ((key.topic, str(key.partition)), read(log)) for key, log in list(manager.logs.items())
        )

    registry.add(names.LOG_SEGMENTS, of_each(lambda log: len(log.files.list)))
    registry.add(names.LOG_START, of_each(lambda log: log.first_offset))
    registry.add(names.LOG_END, of_each(lambda log: log.log_end_offset))
    registry.add(names.LOG_SIZE, of_each(lambda log: log.size))
    registry.add(names.LOG_FLUSHES, same(manager.flush_times))
    _add_directories(registry, manager)
    if manager.cleaner is not None:
        _add_cleaner(registry, manager.cleaner)


def _add_directories(registry: Registry, manager: LogManager) -> None:
    def in_state(wanted: str) -> Source:
        return lambda: (((path,), int(state == wanted)) for path, state in states(manager).items())

    def used() -> Iterator[tuple[tuple[str], int]]:
        known = sizes(manager)
        for path in states(manager):
            yield (path,), known[path]

    def of_disks(at: int) -> Source:
        return lambda: (
            ((path,), value) for path in manager.log_dirs if (value := space(path)[at]) != UNKNOWN
        )

    registry.add(names.OFFLINE_DIRECTORIES, one(lambda: len(manager.failed_dirs)))
    registry.add(names.DIRECTORY_OFFLINE, in_state(FAILED))
    registry.add(names.DIRECTORY_FULL, in_state(FULL))
    registry.add(names.DIRECTORY_SIZE, used)
    registry.add(names.DISK_TOTAL, of_disks(0))
    registry.add(names.DISK_FREE, of_disks(1))


def _add_cleaner(registry: Registry, cleaner: LogCleaner) -> None:
    passes = cleaner.last_passes

    def fullest() -> int:
        return int(100 * max([each.buffer_utilization for each in passes.values()], default=0.0))

    def recopied() -> int:
        read = sum(each.bytes_read for each in passes.values())
        written = sum(each.bytes_written for each in passes.values())
        return int(100 * written / max(read, 1))

    def longest() -> int:
        return int(max([each.seconds for each in passes.values()], default=0.0))

    registry.add(names.CLEANER_BUFFER, one(fullest))
    registry.add(names.CLEANER_RECOPY, one(recopied))
    registry.add(names.CLEANER_TIME, one(longest))
    registry.add(names.CLEANER_DIRTY, one(lambda: int(100 * cleaner.max_dirty_ratio)))
    registry.add(names.CLEANER_IO, same(cleaner.throttled))


def add_replicas(registry: Registry, replicas: ReplicaManager, isr: IsrMaintenance) -> None:
    partitions, counts = replicas.partitions, replicas.counts

    def hosted() -> list[Partition]:
        return [each for each in partitions.values() if each.log is not None]

    def summed(read: Callable[[Partition], int]) -> Source:
        return one(lambda: registry.total(hosted(), read))

    def of_each(read: Callable[[Partition], int]) -> Source:
        return lambda: (
            ((key.topic, str(key.partition)), read(each)) for key, each in list(partitions.items())
        )

    def under_min_isr(partition: Partition) -> int:
        spare = _spare_replicas(partition)
        return int(spare is not None and spare < 0)

    def at_min_isr(partition: Partition) -> int:
        return int(_spare_replicas(partition) == 0)

    registry.add(names.LEADERS, summed(lambda each: int(each.is_leader)))
    registry.add(names.PARTITIONS, summed(lambda each: 1))
    registry.add(names.UNDER_REPLICATED, of_each(is_under_replicated))
    registry.add(names.UNDER_REPLICATED_COUNT, summed(is_under_replicated))
    registry.add(names.UNDER_MIN_ISR, summed(under_min_isr))
    registry.add(names.AT_MIN_ISR, summed(at_min_isr))
    registry.add(names.PARTITION_UNDER_MIN_ISR, of_each(under_min_isr))
    registry.add(names.PARTITION_AT_MIN_ISR, of_each(at_min_isr))
    registry.add(names.IN_SYNC_REPLICAS, of_each(lambda each: len(each.isr) * each.is_leader))
    registry.add(names.ZOOKEEPER_AWAY, one(lambda: int(replicas.fenced)))
    registry.add(names.ISR_EXPANDS, same(isr.expands))
    registry.add(names.ISR_SHRINKS, same(isr.shrinks))
    for kind in KINDS:
        registry.add(names.TOPICS[kind], partial(counts.topics.series, kind))
    registry.add(names.CONSUMER_EXPIRES, same(counts.consumer_expires))
    registry.add(names.FOLLOWER_EXPIRES, same(counts.follower_expires))

    def expired() -> Iterator[tuple[tuple[str, str], Meter]]:
        yield ("", ""), counts.produce_expires
        for key, meter in list(counts.produce_expires_of.items()):
            yield (key.topic, str(key.partition)), meter

    registry.add(names.PRODUCE_EXPIRES, expired)
    _add_purgatory(registry, names.PRODUCE_PURGATORY, replicas.produce_purgatory)
    _add_purgatory(
        registry, names.FETCH_PURGATORY, replicas.fetch_purgatory, replicas.follower_purgatory
    )


def is_under_replicated(partition: Partition) -> int:
    return int(partition.is_leader and len(partition.isr) < len(partition.replicas))


def _spare_replicas(partition: Partition) -> int | None:
    """How many the isr has above min.insync.replicas; None if the partition is not led here."""
    if not partition.is_leader or partition.log is None:
        return None
    return len(partition.isr) - partition.log.config.min_insync_replicas


def add_producers(registry: Registry, replicas: ReplicaManager, clock: Clock, late_ms: int) -> None:
    """Producers with an id, and transactions of one that was silent for more than ``late_ms``."""

    def is_late(partition: Partition) -> bool:
        if not partition.is_leader or partition.log is None:
            return False
        since = partition.log.producers.open_since()
        return since is not None and since + late_ms < clock.millis()

    def known() -> int:
        logs = [each.log for each in list(replicas.partitions.values())]
        return sum(len(log.producers.states) for log in logs if log is not None)

    registry.add(names.PRODUCER_IDS, one(known))
    registry.add(
        names.LATE_TRANSACTIONS,
        one(lambda: sum(map(is_late, list(replicas.partitions.values())))),
    )


def _add_purgatory(
    registry: Registry, metrics: tuple[Metric, Metric], *purgatories: Purgatory
) -> None:
    entries, requests = metrics
    registry.add(entries, one(lambda: sum(each.entries for each in purgatories)))
    registry.add(requests, one(lambda: sum(map(len, purgatories))))


def add_fetchers(registry: Registry, manager: ReplicaFetcherManager) -> None:
    def lags() -> Iterator[tuple[tuple[str, str, str], int]]:
        for fetcher in manager.fetchers:
            for key, lag in fetcher.lags.items():
                yield (fetcher.name, key.topic, str(key.partition)), lag

    def slowest() -> float:
        rates = [each.stats.fetches.meter.rates for each in manager.fetchers]
        return min([rate[0] for rate in rates if rate is not None], default=0.0)

    def of_each(read: Callable[[FetcherStats], object]) -> Source:
        return lambda: [(_tags(each), read(each.stats)) for each in manager.fetchers]

    def with_sums(read: Callable[[FetcherStats], object]) -> Source:
        """Also over all brokers of a client, which has one only."""
        return lambda: [
            (tags, read(each.stats))
            for each in manager.fetchers
            for tags in ((each.name, "", ""), _tags(each))
        ]

    registry.add(names.MAX_LAG, lambda: [((_CLIENT,), max([lag for _, lag in lags()], default=0))])
    registry.add(names.MIN_FETCH_RATE, lambda: [((_CLIENT,), slowest())])
    registry.add(names.FETCHER_LAG, lags)
    registry.add(names.FETCHER_REQUESTS, of_each(lambda stats: stats.fetches.meter))
    registry.add(names.FETCHER_BYTES, of_each(lambda stats: stats.bytes))
    registry.add(names.FETCH_TIMES, with_sums(lambda stats: stats.fetches))
    registry.add(names.FETCH_SIZES, with_sums(lambda stats: stats.sizes))


def _tags(fetcher: ReplicaFetcher) -> tuple[str, str, str]:
    return fetcher.name, fetcher.leader.host, str(fetcher.leader.port)


def add_offsets(registry: Registry, offsets: OffsetManager) -> None:
    registry.add(names.OFFSETS, one(lambda: offsets.num_offsets))
    registry.add(names.GROUPS, one(lambda: len(offsets.groups_with_offsets())))


def add_requests(registry: Registry, server: Server, requests: RequestMetrics) -> None:
    def waiting() -> list[tuple[tuple[str], int]]:
        count = server.backlog()[1]
        return [(("",), count), ((_LOOP,), count)]

    registry.add(names.REQUEST_QUEUE, one(lambda: server.backlog()[0]))
    registry.add(names.RESPONSE_QUEUE, waiting)
    registry.add(names.CONNECTIONS, one(lambda: server.connections))
    registry.add(names.BEING_SENT, one(lambda: server.backlog()[2]))
    registry.add(
        names.REQUESTS,
        lambda: [((name,), meter.requests) for name, meter in requests.items()],
    )
    for part in PARTS:
        registry.add(names.REQUEST_TIMES[part], partial(_times, requests, part))


def _times(requests: RequestMetrics, part: str) -> list[tuple[tuple[str], Histogram]]:
    return [((name,), getattr(meter, part)) for name, meter in requests.items()]


def add_controller(registry: Registry, controller: Controller) -> None:
    def offline() -> int:
        context = controller.context
        if context is None:
            return 0
        live = set(context.live_or_shutting_down)

        def is_offline(of: tuple[TopicPartition, LeaderAndIsr]) -> bool:
            key, state = of
            is_led = state.leader in live
            if is_led and context.partition_state(key) is not PartitionState.OFFLINE:
                return False
            return not context.is_being_deleted(key)

        return registry.total(list(context.leadership.items()), is_offline)

    def moved() -> int:
        context = controller.context
        if context is None:
            return 0

        def is_moved(of: tuple[TopicPartition, tuple[int, ...]]) -> bool:
            key, replicas = of
            moved = bool(replicas) and _leads_elsewhere(context.leadership.get(key), replicas)
            return moved and not context.is_being_deleted(key)

        return registry.total(list(context.assignment.items()), is_moved)

    def assigned() -> Collection[TopicPartition]:
        return () if controller.context is None else controller.context.assignment

    registry.add(names.ACTIVE_CONTROLLER, one(lambda: int(controller.context is not None)))
    registry.add(names.OFFLINE_PARTITIONS, one(offline))
    registry.add(names.PREFERRED_IMBALANCE, one(moved))
    registry.add(names.GLOBAL_TOPICS, one(lambda: len({key.topic for key in assigned()})))
    registry.add(names.GLOBAL_PARTITIONS, one(lambda: len(assigned())))
    registry.add(names.ELECTIONS, same(controller.stats.elections))
    registry.add(names.UNCLEAN_ELECTIONS, same(controller.stats.unclean))


def _leads_elsewhere(state: LeaderAndIsr | None, replicas: tuple[int, ...]) -> bool:
    return state is not None and state.leader != replicas[0]
