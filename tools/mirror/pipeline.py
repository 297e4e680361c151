"""From readers to a target, with positions that move when the target has acknowledged.

The offset to commit for a partition is that of the first message that is not acknowledged yet.
Knows neither consumer nor producer: readers return messages with their positions, and a target
calls back when a message is stored.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from tools.mirror.channel import DataChannel

logger = logging.getLogger("kafka.tools.MirrorMaker$")

Done = Callable[[BaseException | None], None]


class CommitPosition(Protocol):
    """``processed_offset`` is what may be committed."""

    processed_offset: int


class SourceMessage(Protocol):
    """Of a source. ``timestamp`` is in ms; -1 if it has none."""

    @property
    def topic(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...


class SourceReader(Protocol):
    """One stream of a source. ``take`` hands out what ``has_next`` found, if it is still ours."""

    def has_next(self) -> bool: ...
    def take(self) -> tuple[CommitPosition, SourceMessage] | None: ...


class Target(Protocol):
    """``send`` keeps the order of equal keys; ``done`` is called once, from any thread.

    A target that can have timestamps and headers keeps those of ``message``.
    """

    def send(self, message: SourceMessage, key: bytes | None, done: Done) -> None: ...
    def close(self, timeout: float) -> None: ...


class _Lane:
    """A partition's messages under way, oldest first: [next offset, whether it is stored]."""

    __slots__ = ("position", "processed", "sent")

    def __init__(self, position: CommitPosition) -> None:
        self.position = position
        self.processed = position.processed_offset
        self.sent: deque[list[int]] = deque()

    @property
    def stale(self) -> bool:
        """Whether the position was reset, to where the log begins or ends."""
        return self.position.processed_offset != self.processed

    def advance(self) -> None:
        moved = self.processed
        while self.sent and self.sent[0][1]:
            moved = self.sent.popleft()[0]
        if not self.stale:
            self.position.processed_offset = self.processed = moved


class Window:
    """The messages of some readers that were sent and not acknowledged, at most ``limit``.

    ``failed`` is called with the first error of a send, unless ``skip_failed``: then such a
    message counts as processed and is logged. ``channel`` counts each message, if somebody
    reads its figures. ``stopping``: whether nothing more is handed out.
    """

    def __init__(
        self,
        limit: int,
        failed: Callable[[BaseException], None],
        *,
        skip_failed: bool = False,
        channel: DataChannel | None = None,
    ) -> None:
        self.stopping = False
        self._channel = channel
        self._limit = limit
        self._failed = failed
        self._skip_failed = skip_failed
        self._changed = threading.Condition()
        self._lanes: dict[int, _Lane] = {}
        self._under_way = 0
        self._waiting = 0
        self._broken = False

    def take(self, reader: SourceReader) -> tuple[SourceMessage, Done] | None:
        """The message ``reader`` has found and what to call when it is stored.

        Waits for room. None when it was lost to another member, or nothing more is wanted.
        """
        with self._changed:
            if self._under_way >= self._limit:
                self._wait_for_room()
            if self.stopping or self._broken:
                return None
            taken = reader.take()
            if taken is None:
                return None
            position, message = taken
            lane = self._lanes.get(id(position))
            if lane is None or lane.stale:
                lane = self._lanes[id(position)] = _Lane(position)
            entry = [message.offset + 1, False]
            lane.sent.append(entry)
            self._under_way += 1
            if self._channel is not None:
                self._channel.put()
        return message, lambda error: self._done(lane, entry, error)

    def _done(self, lane: _Lane, entry: list[int], error: BaseException | None) -> None:
        with self._changed:
            self._under_way -= 1
            if self._channel is not None:
                self._channel.taken()
            first = not self._broken
            if error is None or self._skip_failed:
                entry[1] = True
                lane.advance()
            else:
                self._broken = True
            if self._waiting or self._broken:
                self._changed.notify_all()
            stopping = self.stopping
        if error is None or stopping:
            return
        if self._skip_failed:
            logger.error("A message was not mirrored: %s", error)
        elif first:
            self._failed(error)

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until nothing is under way; False after ``timeout`` seconds or a failed send."""
        with self._changed:
            settled = self._wait(lambda: not self._under_way, timeout)
            if settled:
                self._lanes.clear()
            return settled

    def _wait_for_room(self) -> None:
        if self._channel is not None:
            self._channel.wait(1)
        self._wait(lambda: self._under_way < self._limit, None)
        if self._channel is not None:
            self._channel.wait(-1)

    def _wait(self, met: Callable[[], bool], timeout: float | None) -> bool:
        self._waiting += 1
        try:
            self._changed.wait_for(lambda: met() or self._broken or self.stopping, timeout)
            if self.stopping and not self._broken and timeout is not None:
                self._changed.wait_for(lambda: met() or self._broken, timeout)
            return met()
        finally:
            self._waiting -= 1

    def stop(self) -> None:
        """Hand out nothing more; waits end."""
        with self._changed:
            self.stopping = True
            self._changed.notify_all()


class Copier:
    """A thread that moves messages from one reader to targets, by key."""

    def __init__(
        self,
        number: int,
        reader: SourceReader,
        window: Window,
        choose: Callable[[bytes | None], Target],
        failed: Callable[[BaseException], None],
    ) -> None:
        self.name = f"mirrormaker-consumer-{number}"
        self._reader = reader
        self._window = window
        self._choose = choose
        self._failed = failed
        # A daemon: it may hang in a send when the end comes.
        self._thread = threading.Thread(target=self.run, name=self.name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def run(self) -> None:
        """The thread's work: until the reader ends or fails."""
        logger.info("[%s] Starting mirror maker consumer thread %s", self.name, self.name)
        try:
            while self._reader.has_next() and not self._window.stopping:
                taken = self._window.take(self._reader)
                if taken is not None:
                    self._send(*taken)
        except BaseException as error:
            if not self._window.stopping:
                logger.critical("[%s] Stream unexpectedly exited.", self.name, exc_info=True)
                self._failed(error)
        finally:
            logger.info("[%s] Consumer thread stopped", self.name)

    def _send(self, message: SourceMessage, done: Done) -> None:
        key = message.key
        try:
            self._choose(key).send(message, key, done)
        except Exception as error:
            done(error)
