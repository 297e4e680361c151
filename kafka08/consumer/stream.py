"""A stream of messages from fetched chunks, and the positions of its partitions.

Mirrors kafka.consumer.KafkaStream, ConsumerIterator and PartitionTopicInfo. Fetchers put chunks
into a stream's queue; the stream decodes them, skips messages consumed before, and returns
messages one by one. It does not know brokers or offset stores.

A message counts as processed when the caller requests the next one: until then the caller may
still be working on it. The original counts a message as consumed when it is returned, and loses
it if the process dies; a stream does the same if it is configured to.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from kafka08.client.meters import TopicMeters
from kafka08.common import TopicPartition
from kafka08.consumer.decoders import Decoder
from kafka08.consumer.errors import ConsumerTimeoutError, StreamFailedError
from kafka08.errors import MessageSizeTooLargeError
from kafka08.message.consumed import Message, MessageSource, consumed, timed
from kafka08.message.entry import BytesLike
from kafka08.message.sets import iter_runs, next_offset
from kafka08.runtime import Empty, Queue

logger = logging.getLogger("kafka.consumer.ConsumerIterator")


class PartitionPosition:
    """A member's position in a partition it owns; -1 before the first offset is known.

    ``fetched_offset``: where the next fetch starts. ``consumed_offset``: after the last message
    returned. ``processed_offset``: after the last message whose successor was requested.
    ``owned`` becomes false at a rebalance; chunks still queued then yield no more messages.
    ``high_watermark``: the end of the partition for consumers, as of the last fetch.
    """

    __slots__ = (
        "consumed_offset", "fetched_offset", "high_watermark", "owned", "processed_offset",
        "stream", "tp",
    )  # fmt: skip

    def __init__(self, tp: TopicPartition, offset: int, stream: KafkaStream) -> None:
        self.tp = tp
        self.stream = stream
        self.owned = True
        self.high_watermark = -1
        self.reset(offset)

    def reset(self, offset: int) -> None:
        """Start over at ``offset``."""
        self.fetched_offset = self.consumed_offset = self.processed_offset = offset

    def skip_to(self, offset: int) -> None:
        """There are no messages for readers up to ``offset``."""
        if self.processed_offset == self.consumed_offset < offset:
            self.processed_offset = offset
        self.consumed_offset = max(self.consumed_offset, offset)

    @property
    def lag(self) -> int:
        """Messages that are still to be fetched; -1 before the first fetch."""
        if self.high_watermark < 0:
            return -1
        return max(self.high_watermark - self.fetched_offset, 0)

    def __repr__(self) -> str:
        return (
            f"{self.tp.topic}:{self.tp.partition}: fetched offset = {self.fetched_offset}: "
            f"consumed offset = {self.consumed_offset}"
        )


class Chunk(NamedTuple):
    """One partition's part of a fetch response; its last entry may be cut short.

    ``next_offset`` follows its last whole entry; it is ``fetch_offset`` when none is whole.
    """

    position: PartitionPosition
    fetch_offset: int
    next_offset: int
    message_set: BytesLike


def chunk_of(
    position: PartitionPosition, message_set: BytesLike, shown: BytesLike | None = None
) -> Chunk:
    """A chunk fetched at the position. ``shown``: what is left of the set for readers of committed
    transactions. Raises InvalidMessageError for a corrupt structure."""
    fetched = position.fetched_offset
    visible = message_set if shown is None else shown
    return Chunk(position, fetched, next_offset(message_set, fetched), visible)


class _Opened:
    """The chunk that is read: ``run`` are the messages that are next, ``runs`` those after them.
    ``next_offset`` is that of the chunk: markers of transactions may stand before it."""

    __slots__ = ("next_offset", "position", "run", "runs")

    def __init__(
        self, position: PartitionPosition, next_offset: int, runs: Iterator[Sequence[Message]]
    ) -> None:
        self.position = position
        self.next_offset = next_offset
        self.runs = runs
        self.run: Iterator[Message] = iter(())


_Ready = tuple[PartitionPosition, Message]


class KafkaStream:
    """Iterates the messages of one queue of chunks, for one task at a time.

    ``timeout_ms`` < 0 waits without limit. Otherwise ConsumerTimeoutError is raised after an idle
    wait, and the stream stays usable. After any other error (a bad crc, or MessageSizeTooLargeError
    for a message above the fetch size) every call raises StreamFailedError. Iteration ends when the
    connector is closed. ``commit_handed_out``: count a message as processed at once. ``meter``
    counts the messages found, chunk by chunk; ``messages`` is their exact number.
    """

    def __init__(
        self,
        queue: Queue[Chunk | None],
        *,
        timeout_ms: int = -1,
        key_decoder: Decoder | None = None,
        value_decoder: Decoder | None = None,
        commit_handed_out: bool = False,
        meter: TopicMeters | None = None,
    ) -> None:
        self.messages = 0
        self._meter = meter
        self._metered = 0
        self._topic = ""  # that of the messages since the last mark
        self._queue = queue
        self._commit_handed_out = commit_handed_out
        self._timeout = None if timeout_ms < 0 else timeout_ms / 1000
        self._key_decoder = key_decoder
        self._value_decoder = value_decoder
        self._chunk: _Opened | None = None
        self._ready: _Ready | None = None
        self._held: PartitionPosition | None = None  # that of the message returned last
        self._failure: BaseException | None = None
        self._ended = False

    # --- the reader's side

    def __iter__(self) -> KafkaStream:
        return self

    def has_next(self) -> bool:
        """Wait for a message and return True. False only after the connector was closed."""
        self._release_held()
        if self._ready is None:
            self._ready = self._find()
        return self._ready is not None

    def __next__(self) -> Message:
        # The consumer's hottest path: has_next, take and a loop of _find, inlined.
        held = self._held
        if held is not None:
            held.processed_offset = held.consumed_offset
        opened = self._chunk
        if opened is not None and self._ready is None:
            position = opened.position
            for message in opened.run:
                if not position.owned:
                    break
                offset = message.offset
                if offset >= position.consumed_offset:
                    self.messages += 1
                    position.consumed_offset = offset + 1
                    if self._commit_handed_out:
                        position.processed_offset = offset + 1
                    else:
                        self._held = position
                    return message
        if not self.has_next():
            raise StopIteration
        assert self._ready is not None
        (position, message), self._ready = self._ready, None
        position.consumed_offset = following = message.offset + 1
        if self._commit_handed_out:
            position.processed_offset = following
        else:
            self._held = position
        return message

    def peek(self) -> Message | None:
        """The message that ``take`` would return."""
        ready = self._ready
        return ready[1] if ready is not None and ready[0].owned else None

    def take(self) -> tuple[PartitionPosition, Message] | None:
        """The message ``has_next`` found, with its position; None if its partition was released.

        For callers who do not iterate but move ``processed_offset`` themselves.
        """
        ready, self._ready = self._ready, None
        if ready is None or not ready[0].owned:
            return None
        position, message = ready
        position.consumed_offset = message.offset + 1
        return ready

    def _find(self) -> _Ready | None:
        if self._ended:
            return None
        if self._failure is not None:
            raise StreamFailedError() from self._failure
        try:
            while True:
                opened = self._chunk
                if opened is not None:
                    position = opened.position
                    while position.owned:
                        for message in opened.run:
                            if position.owned and message.offset >= position.consumed_offset:
                                self.messages += 1
                                return position, message
                        run = next(opened.runs, None)
                        if run is None:
                            position.skip_to(opened.next_offset)
                            break
                        opened.run = iter(run)
                    if self._chunk is opened:
                        self._chunk = None
                if not self._next_chunk():
                    return None
        except ConsumerTimeoutError:
            raise
        except Exception as error:
            self._failure = error
            raise

    def _release_held(self) -> None:
        """Mark the message returned last as processed. After a reset the two are equal already."""
        held, self._held = self._held, None
        if held is not None:
            held.processed_offset = held.consumed_offset

    def _next_chunk(self) -> bool:
        """Wait for a chunk and make it the current one; False if the stream has ended."""
        if self._meter is not None:
            if self.messages > self._metered:
                self._meter.mark(self._topic, self.messages - self._metered)
            self._metered = self.messages
        try:
            chunk = self._queue.get(timeout=self._timeout)
        except Empty:
            raise ConsumerTimeoutError() from None
        if chunk is None:
            self._ended = True
            return False
        position = chunk.position
        if not position.owned:
            return True
        if position.consumed_offset < chunk.fetch_offset:
            logger.error(
                "consumed offset: %d doesn't match fetch offset: %d for %r;\n"
                " Consumer may lose data",
                position.consumed_offset,
                chunk.fetch_offset,
                position,
            )
            position.consumed_offset = chunk.fetch_offset
        if chunk.next_offset == chunk.fetch_offset:
            raise MessageSizeTooLargeError(
                "Found a message larger than the maximum fetch size of this consumer on topic "
                f"{position.tp.topic} partition {position.tp.partition} at fetch offset "
                f"{chunk.fetch_offset}. Increase the fetch size, or decrease the maximum "
                "message size the broker will allow."
            )
        tp = position.tp
        self._topic = tp.topic
        source = MessageSource(tp.topic, tp.partition, self._key_decoder, self._value_decoder)
        runs = iter_runs(chunk.message_set, partial(consumed, source), partial(timed, source))
        self._chunk = _Opened(position, chunk.next_offset, runs)
        return True

    # --- the connector's side

    @property
    def unmetered(self) -> tuple[str, int]:
        """Messages that ``meter`` does not have yet, and their topic; "" before the first chunk."""
        return self._topic, self.messages - self._metered

    @property
    def queued(self) -> int:
        """Chunks fetched ahead."""
        return self._queue.qsize()

    def offer(self, chunk: Chunk, timeout: float) -> None:
        """Queue a chunk; raises Full after ``timeout`` seconds."""
        self._queue.put(chunk, timeout=timeout)

    def clear(self) -> None:
        """Drop all fetched messages but the one that a reader may already be taking."""
        self._chunk = None
        _drain(self._queue)

    def end(self) -> None:
        """Let the reader finish its current chunk and then stop."""
        _drain(self._queue)
        self._queue.put(None)


def _drain(queue: Queue[Chunk | None]) -> None:
    try:
        while True:
            queue.get(block=False)
    except Empty:
        pass
