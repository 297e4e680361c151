"""The topics in the metadata of consumers: needed to protect offsets, and for nothing else."""

from __future__ import annotations

from kafka08.errors import ProtocolError
from kafka08.groups import consumer_protocol
from kafka08.server.groups.group import Group


def subscribed_topics(group: Group) -> set[str] | None:
    """The topics that members read; None if the metadata of one of them cannot be understood."""
    topics: set[str] = set()
    for member in group.members.values():
        for strategy in member.strategies:
            try:
                topics.update(consumer_protocol.subscribed_topics(strategy.metadata))
            except ProtocolError:
                return None
    return topics
