"""Requests about many partitions: one to each leader, and their answers together.

Pure. The callers know the leaders and send the requests; what they do about a partition without an
answer is theirs as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from kafka08.common import Broker, TopicPartition
from kafka08.errors import KafkaError

T = TypeVar("T")


class Answers(NamedTuple):
    """The number that was asked for of each partition, such as an offset, or the error instead. A
    partition for which there is no such number is in neither."""

    values: dict[TopicPartition, int]
    errors: dict[TopicPartition, Exception]

    def checked(self) -> dict[TopicPartition, int]:
        """The values. Raises the first error."""
        for error in self.errors.values():
            raise error
        return self.values


def by_leader(
    partitions: Mapping[TopicPartition, T], leader_of: Callable[[TopicPartition], Broker | None]
) -> dict[Broker, dict[TopicPartition, T]]:
    """Split by leader; partitions without one are left out. Raises what ``leader_of`` raises."""
    shards: dict[Broker, dict[TopicPartition, T]] = {}
    for tp, value in partitions.items():
        leader = leader_of(tp)
        if leader is not None:
            shards.setdefault(leader, {})[tp] = value
    return shards


def ask_leaders(
    shards: Mapping[Broker, Mapping[TopicPartition, T]],
    ask: Callable[[Broker, Mapping[TopicPartition, T]], Answers],
) -> Answers:
    """The answers of all leaders about their partitions. An OSError or KafkaError of ``ask``
    is the error of each partition of that leader."""
    values: dict[TopicPartition, int] = {}
    errors: dict[TopicPartition, Exception] = {}
    for leader, partitions in shards.items():
        try:
            answers = ask(leader, partitions)
        except (OSError, KafkaError) as error:
            errors.update(dict.fromkeys(partitions, error))
        else:
            values.update(answers.values)
            errors.update(answers.errors)
    return Answers(values, errors)
