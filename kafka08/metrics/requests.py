"""How many requests of a kind were answered, and where their time went
(kafka.network.RequestChannel's metrics)."""

from __future__ import annotations

from typing import Final

from kafka08.metrics.meters import Histogram, Meter

PARTS = (
    "request_queue_time",
    "local_time",
    "remote_time",
    "response_queue_time",
    "response_send_time",
    "total_time",
)
_MICROS: Final = 1_000_000
_SCALE: Final = 1000  # microseconds, shown as milliseconds

FETCH_CONSUMER, FETCH_FOLLOWER = "FetchConsumer", "FetchFollower"
# Those of 0.8.2.2, by API key.
NAMES = (
    "Produce",
    "Fetch",
    "Offsets",
    "Metadata",
    "LeaderAndIsr",
    "StopReplica",
    "UpdateMetadata",
    "ControlledShutdown",
    "OffsetCommit",
    "OffsetFetch",
    "ConsumerMetadata",
    "JoinGroup",
    "Heartbeat",
)


# After a ``settle`` this many requests go into the distributions, then one of _EACH and those that
# took longer than any before. Counts and sums have all. _EACH is a power of two.
_WHOLE: Final = 64
_EACH: Final = 16


class RequestMeter:
    """The requests of one kind. ``sum_of``: the kinds that it is the sum of; it is not told of
    their requests. ``settle`` comes before it is read."""

    __slots__ = ("_held", "_left", "_local", "_longest", "_queued", "_remote", "_sending",
                 "_sum", "_sum_of", "requests", *PARTS)  # fmt: skip

    def __init__(self, *sum_of: RequestMeter) -> None:
        self.requests = Meter()
        self._sum: RequestMeter | None = None
        self._sum_of = sum_of
        for each in sum_of:
            each._sum = self
        self._left = _WHOLE
        self._longest = 0.0
        self._queued = self._local = self._remote = self._held = self._sending = 0.0
        self.request_queue_time = Histogram(_SCALE)
        self.local_time = Histogram(_SCALE)
        self.remote_time = Histogram(_SCALE)
        self.response_queue_time = Histogram(_SCALE)
        self.response_send_time = Histogram(_SCALE)
        self.total_time = Histogram(_SCALE)

    def record(
        self, queued: float, local: float, remote: float, held: float, sending: float
    ) -> None:
        """A request was answered; the parts of its time in seconds."""
        self.requests.count = count = self.requests.count + 1
        self._queued += queued
        self._local += local
        self._remote += remote
        self._held += held
        self._sending += sending
        if self._left or not count & (_EACH - 1) or local + remote > self._longest:
            self._distribute(queued, local, remote, held, sending)

    def _distribute(
        self, queued: float, local: float, remote: float, held: float, sending: float
    ) -> None:
        self._left = max(self._left - 1, 0)
        self._longest = max(self._longest, local + remote)
        self.request_queue_time.update(int(queued * _MICROS))
        self.local_time.update(int(local * _MICROS))
        self.remote_time.update(int(remote * _MICROS))
        self.response_queue_time.update(int(held * _MICROS))
        self.response_send_time.update(int(sending * _MICROS))
        self.total_time.update(int((queued + local + remote + held + sending) * _MICROS))
        if self._sum is not None:
            self._sum._distribute(queued, local, remote, held, sending)

    def settle(self) -> None:
        """Give the distributions the counts and sums of all requests."""
        self._left = _WHOLE
        kinds = self._sum_of
        if kinds:
            self.requests.count = sum([each.requests.count for each in kinds])
            self._queued = sum([each._queued for each in kinds])
            self._local = sum([each._local for each in kinds])
            self._remote = sum([each._remote for each in kinds])
            self._held = sum([each._held for each in kinds])
            self._sending = sum([each._sending for each in kinds])
        sums = (self._queued, self._local, self._remote, self._held, self._sending)
        for part, total in zip(PARTS, (*sums, sum(sums)), strict=True):
            histogram: Histogram = getattr(self, part)
            histogram.settle(self.requests.count, int(total * _MICROS))


class RequestMetrics:
    """The meters by kind: those of 0.8.2.2 from the start, others from their first request."""

    def __init__(self) -> None:
        self._by_name = {name: RequestMeter() for name in NAMES}
        self.fetch_consumer = self._by_name[FETCH_CONSUMER] = RequestMeter()
        self.fetch_follower = self._by_name[FETCH_FOLLOWER] = RequestMeter()
        self._by_name["Fetch"] = RequestMeter(self.fetch_consumer, self.fetch_follower)
        self._by_key = {key: self._by_name[name] for key, name in enumerate(NAMES)}

    def of(self, key: int, name: str) -> RequestMeter:
        """The meter of an API; ``name`` is that of later releases."""
        meter = self._by_key.get(key)
        if meter is None:
            meter = self._by_key[key] = self._by_name[name] = RequestMeter()
        return meter

    def items(self) -> list[tuple[str, RequestMeter]]:
        """All meters, settled."""
        for meter in self._by_name.values():
            meter.settle()
        return list(self._by_name.items())
