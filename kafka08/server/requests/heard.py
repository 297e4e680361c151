"""Handlers that note who sends a request in which version, before they serve it.

A request costs a look into a dict for each of its topics, or for its group. It is noted if its
connection has not sent one of the same version about the same name since the dict was emptied.
The client id is that of the first such request. Fetches of followers and of tools that debug are
not noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from kafka08.message.entry import MAGIC_AT
from kafka08.network.peer import Peer, current_peer
from kafka08.protocol.schemas import CONSUMER_REPLICA_ID, Message, RequestHeader
from kafka08.server.requests.dispatch import Handler

PRODUCE: Final = 0
FETCH: Final = 1
OFFSET_COMMIT: Final = 8
JOIN_GROUP: Final = 11
NO_FORMAT: Final = -1
_LONGEST: Final = 255  # characters that are kept of a name that a client chose


class Speaker(NamedTuple):
    """A client. ``software``: as ``Peer`` has it."""

    client_id: str | None
    host: str
    principal: str
    software: tuple[str, str] | None


class Spoken(NamedTuple):
    """``name``: of a topic, or of a group. ``format``: of the messages that were produced."""

    speaker: Speaker
    api_key: int
    version: int
    name: str
    format: int = NO_FORMAT


Seen = dict[str, dict[str, int]]
"""The version that a connection has sent, by its address and by name."""


class Heard:
    """The common part of both kinds: a handler, and what it has ``seen``. ``note`` is given what
    is new."""

    def __init__(self, handler: Handler, seen: Seen, note: Callable[[Spoken], object]) -> None:
        self.key = handler.key
        self.last_version = handler.last_version
        self._handler = handler
        self._seen = seen
        self._note = note

    def failure(self, header: RequestHeader, request: Message, code: int) -> Message:
        return self._handler.failure(header, request, code)

    def _hear(
        self, peer: Peer, header: RequestHeader, names: Iterable[tuple[str, int]], is_noted: bool
    ) -> None:
        version = header.api_version
        seen = self._seen.setdefault(peer.address, {})
        speaker = Speaker(
            None if header.client_id is None else header.client_id[:_LONGEST],
            peer.host,
            peer.principal[:_LONGEST],
            peer.software,
        )
        for name, message_format in names:
            if seen.get(name) == version:
                continue
            if len(name) <= _LONGEST:
                seen[name] = version
            if is_noted:
                self._note(Spoken(speaker, self.key, version, name[:_LONGEST], message_format))


class HeardTopics(Heard):
    """Produce and Fetch."""

    def handle(self, header: RequestHeader, request: Message) -> Message:
        peer = current_peer.get()
        if peer is not None:
            version = header.api_version
            seen = self._seen.get(peer.address)
            for topic in request.topics:
                if seen is None or seen.get(topic.topic) != version:
                    is_noted = self.key != FETCH or request.replica_id == CONSUMER_REPLICA_ID
                    self._hear(peer, header, _topics(request), is_noted)
                    break
        return self._handler.handle(header, request)


class HeardGroups(Heard):
    """OffsetCommit and JoinGroup."""

    def handle(self, header: RequestHeader, request: Message) -> Message:
        peer = current_peer.get()
        if peer is not None:
            seen = self._seen.get(peer.address)
            if seen is None or seen.get(request.group) != header.api_version:
                self._hear(peer, header, [(request.group, NO_FORMAT)], is_noted=True)
        return self._handler.handle(header, request)


def _topics(request: Message) -> Iterator[tuple[str, int]]:
    """Of a topic that is produced to also the format of its first set that has one."""
    for topic in request.topics:
        yield (
            topic.topic,
            next(
                (
                    each.message_set[MAGIC_AT]
                    for each in topic.partitions
                    if len(getattr(each, "message_set", b"")) > MAGIC_AT
                ),
                NO_FORMAT,
            ),
        )


KINDS: Final[dict[int, type[HeardTopics] | type[HeardGroups]]] = {
    PRODUCE: HeardTopics,
    FETCH: HeardTopics,
    OFFSET_COMMIT: HeardGroups,
    JOIN_GROUP: HeardGroups,
}
