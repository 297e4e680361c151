"""Reading one planned range of a partition, as an executor does.

The leader that the planner knew is asked first; after any failure the leader is looked up again.
Records outside the range (the rest of a wrapper) are left out. Offsets are never reset: a range
that is no longer in the log is an error that names partition, range and the log's offsets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from kafka08.client import log_offsets
from kafka08.client.cluster import ClusterClient
from kafka08.client.reading import FetchTooSmallError, Position, fetch, message_set, shown
from kafka08.common import Broker
from kafka08.errors import KafkaError, OffsetOutOfRangeError, raise_for_code
from kafka08.message.entry import AnyMessage, BytesLike
from kafka08.message.sets import iter_messages, next_offset
from kafka08.protocol.schemas import FetchPartitionResponse
from kafka08.runtime import Runtime, ThreadRuntime
from kafka08.spark.errors import (
    EndedEarlyError,
    MessageTooLargeForFetchError,
    OpenTransactionError,
    RangeNotAvailableError,
    naming_leader,
)
from kafka08.spark.patience import WaitLog, patient, retries_within
from kafka08.spark.planner import Range

FETCH_BYTES = 1 << 20
MAX_FETCH_BYTES = 100 << 20
MAX_WAIT_MS = 500

T = TypeVar("T")
# (what of some stored bytes is in the range, the offset after the last whole message there);
# None for either when there is nothing.
Decode = Callable[[BytesLike, Range], tuple[T | None, int | None]]

logger = logging.getLogger("kafka08.spark.reader")


class RangeReader:
    """Reads ranges over one set of connections; one task at a time.

    ``fetch_bytes`` is asked for at first; a message that does not fit has it doubled up to
    ``max_fetch_bytes``. ``retries`` fetches after a failed one, ``backoff_ms`` apart (None: as many
    as PATIENCE_S has room for). If the
    connections of ``cluster`` ask for versions, messages have timestamps and headers. They must for
    ``committed``: then messages of aborted transactions are left out, and a range that reaches
    into an open one is an error.
    """

    def __init__(
        self,
        cluster: ClusterClient,
        *,
        fetch_bytes: int = FETCH_BYTES,
        max_fetch_bytes: int = MAX_FETCH_BYTES,
        retries: int | None = None,
        backoff_ms: int = 200,
        runtime: Runtime | None = None,
        committed: bool = False,
    ) -> None:
        self._runtime = runtime or ThreadRuntime()
        self._committed = committed
        self._fetch_bytes = fetch_bytes
        self._max_fetch_bytes = max(fetch_bytes, max_fetch_bytes)
        self._backoff = backoff_ms / 1000
        self._retries = retries_within(retries, self._backoff)
        self._retry = patient(
            self._runtime,
            self._backoff,
            retries,
            lambda error: not isinstance(error, RangeNotAvailableError),
        )
        self._log = WaitLog(logger, self._runtime.clock)
        self._cluster = cluster

    def read(self, wanted: Range, leader: Broker | None = None) -> Iterator[list[AnyMessage]]:
        """The messages of ``wanted`` in order, fetch by fetch; gaps are passed over.

        Raises RangeNotAvailableError, EndedEarlyError, OpenTransactionError,
        MessageTooLargeForFetchError, and what the last try raised.
        """
        return self.read_as(_messages, wanted, leader)

    def read_as(
        self, decode: Decode[T], wanted: Range, leader: Broker | None = None
    ) -> Iterator[T]:
        """As ``read``, with what ``decode`` makes of the stored bytes of each fetch."""
        position = Position(wanted.start, self._fetch_bytes, self._max_fetch_bytes)
        patience = self._retries
        while position.offset < wanted.end:
            answer, leader = self._fetch(wanted, position, leader)
            data = message_set(answer)
            if not len(data):
                if self._end(answer) >= wanted.end:
                    return  # the rest of the range was compacted away
                if patience == 0:
                    raise _ended_early(wanted, position.offset, answer)
                # A new leader learns only over time what its predecessor had committed.
                patience -= 1
                leader = None
                self._runtime.sleep(self._backoff)
                continue
            visible = shown(answer)
            found, following = decode(visible, wanted)
            if visible is not data:
                following = next_offset(data, position.offset)
            try:
                position.advance(following)
            except FetchTooSmallError as error:
                raise MessageTooLargeForFetchError(
                    f"The message at offset {error.offset} of {wanted} is larger than {error.size} "
                    "bytes: raise fetch.message.max.bytes"
                ) from None
            if found is not None:
                yield found

    def _fetch(
        self, wanted: Range, position: Position, leader: Broker | None
    ) -> tuple[FetchPartitionResponse, Broker]:
        """The answer of a leader, and that leader."""
        tp = wanted.topic_partition

        def ask() -> tuple[FetchPartitionResponse, Broker]:
            nonlocal leader
            if leader is None:
                self._cluster.refresh([tp.topic])
                leader = self._cluster.known_leader(tp)
            try:
                with naming_leader(leader, [tp]):
                    call = partial(self._cluster.call, leader)
                    answer = fetch(
                        call,
                        {tp: position.offset},
                        position.size,
                        max_wait_ms=MAX_WAIT_MS,
                        min_bytes=1,
                        committed=self._committed,
                    )[tp]
                raise_for_code(answer.error, f"No fetch of {tp}: code {answer.error}")
            except OffsetOutOfRangeError:
                raise self._out_of_range(wanted, position.offset, leader) from None
            return answer, leader

        def again(error: Exception) -> None:
            nonlocal leader
            self._log.waiting(f"Fetching {wanted} from {leader}", error)
            leader = None

        return self._retry.run(ask, again=again)

    def _end(self, answer: FetchPartitionResponse) -> int:
        """How far may be read."""
        return answer.last_stable_offset if self._committed else answer.high_watermark

    def _out_of_range(self, wanted: Range, position: int, leader: Broker | None) -> KafkaError:
        there = "an unknown range"
        try:
            tp = wanted.topic_partition
            broker = leader or self._cluster.leader(tp)
            first, last = log_offsets.bounds(partial(self._cluster.call, broker), tp)
            there = f"earliest {first}, latest {last}"
        except (OSError, KafkaError, KeyError):
            pass
        return RangeNotAvailableError(
            f"Offset {position} of {wanted} is out of range: the log has {there}"
        )


def _ended_early(wanted: Range, offset: int, answer: FetchPartitionResponse) -> KafkaError:
    begin = f"{wanted} cannot be read from {offset} on"
    if answer.high_watermark >= wanted.end:
        stable = answer.last_stable_offset
        return OpenTransactionError(f"{begin}: a transaction that began at {stable} is open")
    return EndedEarlyError(
        f"{begin}: the log ends at {answer.high_watermark}. Messages were lost, or the topic was "
        "deleted and created again"
    )


def _messages(data: BytesLike, wanted: Range) -> tuple[list[AnyMessage] | None, int | None]:
    messages = iter_messages(data)
    inside = [each for each in messages if wanted.start <= each.offset < wanted.end]
    return inside or None, next_offset(data, wanted.start)
