"""Holds producers and consumers to their rates (kafka.server.ClientQuotaManager).

A sender over its rate is answered, and its connection is not read from until it owes nothing, for
5 seconds at most, or longer if the sender waits for longer. The rest is owed further: the answer to
the next produce request is followed by a pause again, and the next fetch gets no messages. So
clients of all versions are held, and do not take the broker for dead. Counted are whole produce
requests, and whole answers to fetches of consumers. Fetches of replicas and all other requests are
not counted.
"""

from __future__ import annotations

import math
from typing import Any

from kafka08.network.connection import current_peer
from kafka08.protocol.schemas import FetchRequest, ProduceRequest, RequestHeader
from kafka08.runtime import Clock
from kafka08.security.limits import Entity
from kafka08.security.quota import SECONDS, Quota

# The Scala producer of 0.8 waits 10 seconds for an answer, others 30. Then they send again.
MOST_SECONDS = 5.0
# The time that a producer waits for an answer is in its requests. Producers send up to five ahead,
# which all wait for the same pauses.
_SENT_AHEAD = 6
# However long a producer says that it waits.
LONGEST_SECONDS = 30.0
COUNTED = (0, 1)
"""The keys of the APIs whose requests may be counted: Produce and Fetch."""


class Throttle:
    """``producer_default`` and ``consumer_default`` (bytes a second) hold for each client id for
    which no other rate does. ``seconds``: for so long an unused rate is saved. ``is_on`` is false
    while there is no rate at all: nothing needs to be called then.
    """

    def __init__(
        self,
        clock: Clock,
        producer_default: float | None = None,
        consumer_default: float | None = None,
        seconds: float = SECONDS,
    ) -> None:
        self.producers = Quota(clock, producer_default, seconds)
        self.consumers = Quota(clock, consumer_default, seconds)
        self.is_on = bool(self.producers.limits or self.consumers.limits)

    def set_rates(
        self, entity: Entity, producer_rate: float | None, consumer_rate: float | None
    ) -> None:
        """The rates of an entity from now on; None: it has none of its own."""
        self.producers.limits.set(entity, producer_rate)
        self.consumers.limits.set(entity, consumer_rate)
        self.is_on = bool(self.producers.limits or self.consumers.limits)

    def requested(self, header: RequestHeader, request: Any) -> Any:
        """The request as it is to be served: a consumer that owes is answered without messages, at
        once."""
        if _is_of_consumer(request) and used_by_sender(self.consumers, header, 0):
            return _without_messages(request)
        return request

    def answered(
        self, header: RequestHeader, request: Any, request_bytes: int, answer_bytes: int
    ) -> int:
        """Count the bytes of a request or of its answer, and have the connection paused if that is
        too much. The pause in ms."""
        most = MOST_SECONDS
        if isinstance(request, ProduceRequest):
            owed = used_by_sender(self.producers, header, request_bytes)
            waits = request.timeout_ms / 1000 / _SENT_AHEAD
            most = min(max(waits, MOST_SECONDS), LONGEST_SECONDS)
        elif _is_of_consumer(request):
            owed = used_by_sender(self.consumers, header, answer_bytes)
        else:
            return 0
        return paused(owed, most)


def used_by_sender(quota: Quota, header: RequestHeader, amount: int) -> float:
    """Count units of the present request's sender; the seconds until it owes nothing."""
    peer = current_peer.get()
    user = "" if peer is None else peer.principal.removeprefix("User:")
    return quota.use(user, header.client_id or "", amount)


def paused(owed: float, most: float = MOST_SECONDS) -> int:
    """Have the connection of the present request paused while it owes; the pause in ms."""
    peer = current_peer.get()
    if not owed or peer is None:
        return 0
    peer.mute_seconds = min(owed, most)
    return math.ceil(peer.mute_seconds * 1000)


def _is_of_consumer(request: Any) -> bool:
    return isinstance(request, FetchRequest) and request.replica_id < 0


def _without_messages(request: FetchRequest) -> FetchRequest:
    topics = [
        topic._replace(partitions=[each._replace(max_bytes=0) for each in topic.partitions])
        for topic in request.topics
    ]
    return request._replace(max_wait_ms=0, topics=topics)
