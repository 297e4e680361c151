"""Holds clients to their rates (kafka.server.ClientQuotaManager, ClientRequestQuotaManager).

A sender over its rate is answered, and its connection is not read from until it owes nothing, for
5 seconds at most, or longer if the sender waits for longer. The rest is owed further: the answer to
the next produce request is followed by a pause again, and the next fetch gets no messages. So
clients of all versions are held, and do not take the broker for dead. Counted are whole produce
requests, and whole answers to fetches of consumers. Fetches of replicas and all other requests are
not counted.

Where a share of the loop's time is set, the time that the loop works for a request counts as well,
from its decoding to its encoded answer, for all APIs but those between brokers.
"""

from __future__ import annotations

import math

from kafka08.network.peer import current_peer
from kafka08.protocol.registry import APIS
from kafka08.protocol.schemas import FetchRequest, Message, ProduceRequest, RequestHeader
from kafka08.runtime import Clock
from kafka08.security.limits import Entity
from kafka08.security.quota import SECONDS, Quota
from kafka08.server.quotas.loop_time import LoopTime

# The Scala producer of 0.8 waits 10 seconds for an answer, others 30. Then they send again.
MOST_SECONDS = 5.0
# The time that a producer waits for an answer is in its requests. Producers send up to five ahead,
# which all wait for the same pauses.
_SENT_AHEAD = 6
# However long a producer says that it waits.
LONGEST_SECONDS = 30.0
_OF_BYTES = frozenset({0, 1})  # Produce and Fetch
# LeaderAndIsr, StopReplica, UpdateMetadata, ControlledShutdown and WriteTxnMarkers are sent by
# brokers.
_OF_TIME = frozenset(APIS) - {4, 5, 6, 7, 27}


class Throttle:
    """``producer_default`` and ``consumer_default`` (bytes a second) hold for each client id for
    which no other rate does. ``seconds``: for so long an unused rate is saved.
    ``most_for_time``: the longest pause in seconds for too much time.

    ``is_on`` is false while there is no rate at all: nothing needs to be called then.
    ``counted`` has the keys of the APIs whose requests may be counted. ``timer`` is there while a
    share of time is set: it begins before a request is decoded, and ends after ``answered``.
    """

    def __init__(
        self,
        clock: Clock,
        producer_default: float | None = None,
        consumer_default: float | None = None,
        seconds: float = SECONDS,
        most_for_time: float = 1.0,
    ) -> None:
        self.producers = Quota(clock, producer_default, seconds)
        self.consumers = Quota(clock, consumer_default, seconds)
        self.times = Quota(clock, None, seconds)  # in hundredths of a second of the loop
        self.timer: LoopTime | None = None
        self._most_for_time = most_for_time
        self._loop_time = LoopTime(clock)
        self._switch()

    def set_rates(
        self,
        entity: Entity,
        producer_rate: float | None,
        consumer_rate: float | None,
        percentage: float | None = None,
    ) -> None:
        """The rates of an entity from now on, and its share of the loop's time; None: it has none
        of its own."""
        self.producers.limits.set(entity, producer_rate)
        self.consumers.limits.set(entity, consumer_rate)
        self.times.limits.set(entity, percentage)
        self._switch()

    def _switch(self) -> None:
        is_timed = bool(self.times.limits)
        self.is_on = bool(self.producers.limits or self.consumers.limits or is_timed)
        self.counted = _OF_TIME if is_timed else _OF_BYTES
        if is_timed and self.timer is None:
            self._loop_time.start()
            self.timer = self._loop_time
        elif self.timer is not None and not is_timed:
            self.timer = None
            self._loop_time.stop()

    def requested(self, header: RequestHeader, request: Message) -> Message:
        """The request as it is to be served: a consumer that owes is answered without messages, at
        once."""
        if _is_of_consumer(request) and used_by_sender(self.consumers, header, 0):
            return _without_messages(request)
        return request

    def answered(
        self, header: RequestHeader, request: Message, request_bytes: int, answer_bytes: int
    ) -> int:
        """Count the bytes of a request or of its answer, and its time, and have the connection
        paused if that is too much. The pause in ms."""
        most, owed = MOST_SECONDS, 0.0
        if isinstance(request, ProduceRequest):
            owed = used_by_sender(self.producers, header, request_bytes)
            waits = request.timeout_ms / 1000 / _SENT_AHEAD
            most = min(max(waits, MOST_SECONDS), LONGEST_SECONDS)
        elif _is_of_consumer(request):
            owed = used_by_sender(self.consumers, header, answer_bytes)
        elif isinstance(request, FetchRequest):
            return 0
        pause = paused(owed, most)
        if self.timer is None:
            return pause
        owed = used_by_sender(self.times, header, self.timer.seconds() * 100)
        return max(pause, paused(owed, self._most_for_time))


class MutationQuota:
    """Holds administrators to their rates (kafka.server.ControllerMutationQuotaManager).

    Partitions that CreateTopics, CreatePartitions and DeleteTopics make or delete are counted. The
    versions of these APIs that are served do not know the code of a refusal by quota
    (THROTTLING_QUOTA_EXCEEDED). So a request over the rate is carried out, and the connection is
    paused, as by other quotas and as Kafka does with these versions. ``seconds``: for so long an
    unused rate is saved.
    """

    def __init__(self, clock: Clock, seconds: float = SECONDS) -> None:
        self._quota = Quota(clock, seconds=seconds)
        self.limits = self._quota.limits

    def record(self, header: RequestHeader, partitions: int) -> int:
        """Count what the present request made or deleted; the pause in ms that it causes."""
        if not self.limits or not partitions:
            return 0
        return paused(used_by_sender(self._quota, header, partitions))


def used_by_sender(quota: Quota, header: RequestHeader, amount: float) -> float:
    """Count units of the present request's sender; the seconds until it owes nothing."""
    peer = current_peer.get()
    user = "" if peer is None else peer.principal.removeprefix("User:")
    return quota.use(user, header.client_id or "", amount)


def paused(owed: float, most: float = MOST_SECONDS) -> int:
    """Have the connection of the present request paused while it owes, unless a longer pause is due
    already; the pause in ms that this debt causes."""
    peer = current_peer.get()
    if not owed or peer is None:
        return 0
    seconds = min(owed, most)
    peer.mute_seconds = max(peer.mute_seconds, seconds)
    return math.ceil(seconds * 1000)


def _is_of_consumer(request: Message) -> bool:
    return isinstance(request, FetchRequest) and request.replica_id < 0


def _without_messages(request: FetchRequest) -> FetchRequest:
    topics = [
        topic._replace(partitions=[each._replace(max_bytes=0) for each in topic.partitions])
        for topic in request.topics
    ]
    return request._replace(max_wait_ms=0, topics=topics)
