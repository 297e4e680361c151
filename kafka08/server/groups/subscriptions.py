"""The topics in the metadata of consumers: needed to protect offsets, and for nothing else."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from kafka08.errors import ProtocolError
from kafka08.protocol.codec import decode
from kafka08.protocol.types import Strict, int16, strict_string
from kafka08.server.groups.group import Group

CONSUMER = "consumer"


class _Subscription(NamedTuple):
    """The beginning of a consumer's metadata, in all its versions."""

    version: int16
    topics: Annotated[list[strict_string], Strict()]


def subscribed_topics(group: Group) -> set[str] | None:
    """The topics that members read; None if the metadata of one of them cannot be understood."""
    topics: set[str] = set()
    for member in group.members.values():
        for strategy in member.strategies:
            try:
                topics.update(decode(_Subscription, memoryview(strategy.metadata))[0].topics)
            except ProtocolError:
                return None
    return topics
