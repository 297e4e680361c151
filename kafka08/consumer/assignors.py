"""Assigns partitions to threads: the two strategies of kafka.consumer.PartitionAssignor.

Pure: a member passes in the group as read from ZooKeeper and takes its own share of the result.
All members of a group, the JVM's included, must compute the same result from the same nodes.
So the order is Java's: thread ids compare as whole strings by UTF-16 units, ``g_c-10`` before
``g_c-2``. Does not know ZooKeeper or offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka08.common import TopicPartition, java_string_hash
from kafka08.errors import KafkaError

Assignment = dict[TopicPartition, str]
Assignor = Callable[[Mapping[str, Sequence[str]], Mapping[str, Sequence[int]]], Assignment]


def java_order(text: str) -> bytes:
    """A sort key with the order of ``String.compareTo``."""
    return text.encode("utf-16-be", "surrogatepass")


def thread_ids(consumer_id: str, streams: int) -> list[str]:
    """``<consumer id>-<n>`` for n from 0 (kafka.consumer.ConsumerThreadId)."""
    return [f"{consumer_id}-{number}" for number in range(streams)]


def range_assign(
    consumers: Mapping[str, Sequence[str]], partitions: Mapping[str, Sequence[int]]
) -> Assignment:
    """Give each thread one run of consecutive partitions, topic by topic.

    ``consumers``: topic -> thread ids of all members subscribed to it; ``partitions``: topic ->
    partition ids. The threads that sort first take the remainders of every topic (RangeAssignor).
    """
    assignment: Assignment = {}
    for topic, threads in consumers.items():
        ordered = sorted(threads, key=java_order)
        ids = sorted(partitions.get(topic, ()))
        if not ordered:
            continue
        share, extra = divmod(len(ids), len(ordered))
        for index, thread in enumerate(ordered):
            start = share * index + min(index, extra)
            for partition in ids[start : start + share + (index < extra)]:
                assignment[TopicPartition(topic, partition)] = thread
    return assignment


def roundrobin_assign(
    consumers: Mapping[str, Sequence[str]], partitions: Mapping[str, Sequence[int]]
) -> Assignment:
    """Deal all partitions of all topics in one cycle (RoundRobinAssignor).

    Partitions are dealt in the order of the Java hash of ``[topic,partition]``. Raises
    KafkaError if there is no topic or the topics have different threads.
    """
    if not consumers:
        raise KafkaError("Topics and threads are needed for roundrobin, but no topic is subscribed")
    topics = iter(consumers.items())
    first, threads = next(topics)
    for topic, others in topics:
        if set(others) != set(threads):
            raise KafkaError(
                "roundrobin needs the same streams for every topic of the group, but topic "
                f"{topic} has {sorted(others)} and topic {first} has {sorted(threads)}"
            )
    ordered = sorted(set(threads), key=java_order)
    if not ordered:
        raise KafkaError(f"roundrobin needs a consumer thread, but topic {first} has none")
    dealt = sorted(_pairs(consumers, partitions), key=lambda pair: java_string_hash(str(pair)))
    return {pair: ordered[index % len(ordered)] for index, pair in enumerate(dealt)}


def _pairs(
    topics: Iterable[str], partitions: Mapping[str, Sequence[int]]
) -> Iterable[TopicPartition]:
    for topic in topics:
        for partition in sorted(partitions.get(topic, ())):
            yield TopicPartition(topic, partition)


def assignor_for(strategy: str) -> Assignor:
    """The assignor of a ``partition.assignment.strategy``: any name but roundrobin means range."""
    return roundrobin_assign if strategy == "roundrobin" else range_assign
