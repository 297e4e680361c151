"""The topics in the metadata of consumers.

They are needed to protect offsets, and to see whether a static member has another subscription.
"""

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


def same_subscription(before: bytes, after: bytes) -> bool:
    """Whether a member's metadata names the same topics as before.

    The rest of a consumer's metadata says what it owned and in which generation, which a process
    that has restarted cannot know. Metadata that cannot be understood must be equal.
    """
    try:
        return before == after or set(consumer_protocol.subscribed_topics(before)) == set(
            consumer_protocol.subscribed_topics(after)
        )
    except ProtocolError:
        return False
