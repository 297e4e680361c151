"""kafka-replica-verification: compare what all replicas hold, until it is interrupted.

Mirrors kafka.tools.ReplicaVerificationTool. Round by round every broker is asked for its copy
from the same offsets on; the copies are compared message by message up to the high watermark. A
broker that does not answer delays its partitions until it does. All replicas must be alive at
the start. Wrappers of compressed messages are compared as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

from kafka08.client import log_offsets
from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import flatten
from kafka08.client.routing import Answers, ask_leaders, by_leader
from kafka08.common import Broker, TopicPartition
from kafka08.consumer.filters import Whitelist
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import KafkaError, LeaderNotAvailableError, UnknownError
from kafka08.java_dates import ISO_8601, date_format
from kafka08.message.scan import iter_entries
from kafka08.protocol import schemas
from kafka08.runtime import Clock, Runtime, SystemClock
from tools import admin_command, brokers
from tools.options import Arguments, OptionParser

CLIENT_ID = "replicaVerificationTool"
_local_time = date_format(ISO_8601)
Partitions = Mapping[TopicPartition, schemas.PartitionMetadata]


class Copy(NamedTuple):
    """One replica's answer for a partition; high watermark -1 if it did not answer."""

    high_watermark: int = -1
    message_set: Any = b""


class OffsetMismatchError(Exception):
    """Replicas that do not even hold the same offsets; the text says which."""


PARSER = OptionParser(
    "Validate that all replicas for a set of topics have the same data.",
    """
--broker-list <hostname:port,...,hostname:port>  REQUIRED: The brokers to ask for metadata.
--fetch-size <Integer: bytes>  Bytes asked of a partition at once. (default: 1048576)
--max-wait-ms <Integer: ms>  How long a fetch may wait for data. (default: 1000)
--topic-white-list <Java regex (String)>  A regular expression of the topics to verify.
    (default: .*)
--time <Long: timestamp/-1(latest)/-2(earliest)>  Where to begin. (default: -1)
--report-interval-ms <Long: ms>  Time between two reports. (default: 30000)
""",
    later=admin_command.COMMAND_CONFIG,
)


def main(argv: list[str]) -> int:
    """Runs until it is interrupted, or until replicas hold different offsets (1)."""
    args = PARSER.parse_command(argv, "broker-list")
    whitelist = Whitelist(args.value("topic-white-list"))
    runtime = brokers.runtime(args)
    with brokers.cluster_client(PARSER, args, "broker-list", CLIENT_ID, runtime) as cluster:
        partitions, live = _metadata(cluster, whitelist)
    replicas = _replicas(partitions)
    if not replicas:
        raise UnknownError("No replica of any such topic is there to verify")
    offsets = _first_offsets(partitions, live, args.value("time"), runtime)
    verifier = Verifier(offsets, SystemClock(), args.value("report-interval-ms"))
    print(f"{verifier.now()}: verification process is started.")
    try:
        _run(verifier, replicas, live, args, runtime)
    except OffsetMismatchError as error:
        print(error)
    return 1


# --- what there is to verify


def _metadata(cluster: ClusterClient, whitelist: Whitelist) -> tuple[Partitions, dict[int, Broker]]:
    """The partitions to verify, and the live brokers by id."""
    response = cluster.fetch_metadata(())
    topics = [t for t in response.topics if whitelist.allows(t.topic, exclude_internal=False)]
    return flatten(topics), {broker.node_id: Broker(*broker[:3]) for broker in response.brokers}


def _replicas(partitions: Partitions) -> dict[int, list[TopicPartition]]:
    """The partitions each broker holds."""
    held: dict[int, list[TopicPartition]] = {}
    for tp, partition in partitions.items():
        for broker_id in partition.replicas:
            held.setdefault(broker_id, []).append(tp)
    return held


def _first_offsets(
    partitions: Partitions, brokers: Mapping[int, Broker], time: int, runtime: Runtime
) -> dict[TopicPartition, int]:
    """The leaders' offsets at ``time``. Raises KafkaError, OSError."""
    leaders = {}
    for tp, partition in partitions.items():
        if partition.leader not in brokers:
            raise LeaderNotAvailableError(f"No leader for partition {tp}")
        leaders[tp] = brokers[partition.leader]

    def ask(leader: Broker, times: Mapping[TopicPartition, int]) -> Answers:
        with _consumer(leader, 10000, runtime) as consumer:
            return log_offsets.before(consumer.call, times)

    shards = by_leader(dict.fromkeys(leaders, time), leaders.get)
    return dict.fromkeys(leaders, 0) | ask_leaders(shards, ask).checked()


def _consumer(broker: Broker, timeout_ms: int, runtime: Runtime) -> SimpleConsumer:
    return SimpleConsumer(
        broker.host, broker.port, timeout_ms=timeout_ms, client_id=CLIENT_ID, runtime=runtime
    )


# --- the rounds


def _run(
    verifier: Verifier,
    replicas: Mapping[int, list[TopicPartition]],
    brokers: Mapping[int, Broker],
    args: Arguments,
    runtime: Runtime,
) -> None:
    """Fetch from all brokers at once and compare, until something is raised."""
    max_wait_ms, fetch_size = args.value("max-wait-ms"), args.value("fetch-size")
    consumers = {broker_id: _consumer(brokers[broker_id], 30000, runtime) for broker_id in replicas}

    def fetch(broker_id: int) -> dict[TopicPartition, Copy]:
        positions = {tp: verifier.offsets[tp] for tp in replicas[broker_id]}
        return fetch_copies(consumers[broker_id], positions, fetch_size, max_wait_ms)

    with ThreadPoolExecutor(len(replicas), "ReplicaFetcher") as executor:
        while True:
            copies: dict[TopicPartition, dict[int, Copy]] = {}
            for broker_id, fetched in zip(replicas, executor.map(fetch, replicas), strict=True):
                for tp, copy in fetched.items():
                    copies.setdefault(tp, {})[broker_id] = copy
            for line in verifier.verify(copies):
                print(line)


def fetch_copies(
    consumer: SimpleConsumer,
    positions: Mapping[TopicPartition, int],
    max_bytes: int,
    max_wait_ms: int,
) -> dict[TopicPartition, Copy]:
    """One broker's copies, empty ones if it does not answer."""
    copies = dict.fromkeys(positions, Copy())
    more = {"max_wait_ms": max_wait_ms, "min_bytes": 1, "replica_id": schemas.DEBUG_REPLICA_ID}
    with suppress(OSError, KafkaError):
        for tp, entry in consumer.fetch(positions, max_bytes, **more).items():
            copies[tp] = Copy(entry.high_watermark, entry.message_set)
    return copies


class Verifier:
    """How far the replicas of each partition are known to agree (``offsets``: the next one).

    ``clock`` says when ``report_interval_ms`` has passed since the last report.
    """

    def __init__(
        self, offsets: dict[TopicPartition, int], clock: Clock, report_interval_ms: int
    ) -> None:
        self.offsets = offsets
        self._clock = clock
        self._interval_ms = report_interval_ms
        self._reported_ms = clock.millis()

    def verify(self, copies: Mapping[TopicPartition, Mapping[int, Copy]]) -> Iterator[str]:
        """Compare a round; the lines to print. Raises OffsetMismatchError."""
        max_lag, laggard, offset_of_laggard = -1, None, -1
        for tp, by_replica in copies.items():
            yield from self._compare(tp, by_replica)
            lag = max(copy.high_watermark for copy in by_replica.values()) - self.offsets[tp]
            if lag > max_lag:
                max_lag, laggard, offset_of_laggard = lag, tp, self.offsets[tp]
        now = self._clock.millis()
        if now - self._reported_ms > self._interval_ms:
            self._reported_ms = now
            yield (
                f"{_local_time(now / 1000)}: max lag is {max_lag} for partition "
                f"{laggard or 'null'} at offset {offset_of_laggard} among {len(copies)} paritions"
            )

    def _compare(self, tp: TopicPartition, by_replica: Mapping[int, Copy]) -> Iterator[str]:
        """Advance over the messages that every replica has below its high watermark."""
        entries = [iter_entries(copy.message_set) for copy in by_replica.values()]
        # It ends with the shortest copy, as the original's loop over the iterators does.
        for row in zip(*entries, strict=False):
            offsets_and_limits = zip(row, by_replica.values(), strict=True)
            if any(entry.offset >= copy.high_watermark for entry, copy in offsets_and_limits):
                break
            (first_id, *other_ids), (first, *others) = by_replica, row
            for replica, entry in zip(other_ids, others, strict=True):
                if entry.offset != first.offset:
                    raise OffsetMismatchError(
                        f"{self.now()}: partition {tp}: replica {first_id}'s offset "
                        f"{first.offset} doesn't match replica {replica}'s offset {entry.offset}"
                    )
                if entry.crc != first.crc:
                    yield (
                        f"{self.now()}: partition {tp} has unmatched checksum at offset "
                        f"{entry.offset}; replica {first_id}'s checksum {first.crc}; "
                        f"replica {replica}'s checksum {entry.crc}"
                    )
            self.offsets[tp] = first.offset + 1

    def now(self) -> str:
        return _local_time(self._clock.millis() / 1000)
