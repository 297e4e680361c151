"""Keeps work whose length depends on a client's input away from the event loop.

One thread runs the loop, so what takes more than a few milliseconds makes everybody wait. How
long a compressed set takes shows only when it is opened. It is tried with little room first:
``LOOP_BYTES`` on the loop, then ``SMALL_BYTES`` in one of the few places on other threads, and
what does not fit there waits for the one place for large ones. So a client's ordinary sets never
queue behind another's huge ones, and not many threads compete with the loop for the interpreter.
Long lists of short work are done ``in_turns``.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from kafka08.common import TopicPartition
from kafka08.message import scan
from kafka08.message.compression import InflatesTooFarError
from kafka08.named import named
from kafka08.protocol.schemas import Message
from kafka08.runtime import Queue, Runtime

T = TypeVar("T")

# Sets up to these sizes are checked on the loop: stored bytes, which take a few milliseconds if all
# messages are as small as possible, and the bytes that the wrappers inflate to.
LOOP_STORED_BYTES = 256 << 10 if scan.native is None else 1 << 20
LOOP_BYTES: Final = 256 << 10
# One of the small places may inflate or walk through this many bytes.
SMALL_BYTES: Final = 8 << 20
_SMALL_PLACES: Final = 3

# Requests of this many partitions are handled in turns, and decoded by another thread if they
# have this many bytes.
MANY_PARTITIONS: Final = 500
MANY_BYTES: Final = 64 << 10
MANY_PRODUCE_BYTES: Final = 1 << 20

_TURN_SECONDS: Final = 0.005
# The hub polls sockets only while no greenlet is ready to run.
_PAUSE_SECONDS: Final = 0.001


class LongWork:
    """The places for long work on other threads. Waiting callers are served in order."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._small: Queue[None] = runtime.queue()
        self._large: Queue[None] = runtime.queue()
        for _ in range(_SMALL_PLACES):
            self._small.put(None)
        self._large.put(None)

    def run(self, work: Callable[[int], T], room: int, size: int = 0) -> T:
        """``work(bytes it may inflate)`` on another thread; the greenlet waits meanwhile.

        ``work`` raises InflatesTooFarError if that is not enough and is then called once more,
        with ``room`` bytes. ``size`` bytes it walks through in any case.
        """
        if size <= SMALL_BYTES:
            try:
                return self._at(self._small, work, min(room, SMALL_BYTES))
            except InflatesTooFarError:
                if room <= SMALL_BYTES:
                    raise
        return self._at(self._large, work, room)

    def _at(self, places: Queue[None], work: Callable[[int], T], room: int) -> T:
        places.get()
        try:
            return self._runtime.blocking(work, room)
        finally:
            places.put(None)


class _Collector:
    """Keeps the garbage collector, which stops all threads, from traversing long lists."""

    def __init__(self) -> None:
        self._users = 0
        self._resting = 0
        self._has_set_aside = False

    def __enter__(self) -> None:
        self._users += 1

    def __exit__(self, *exc_info: object) -> None:
        self._users -= 1
        if not self._users and self._has_set_aside:
            self._has_set_aside = False
            gc.unfreeze()

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """A context for work on another thread that creates many objects and does not wait."""
        self._resting += 1
        gc.disable()
        try:
            yield
        finally:
            self._resting -= 1
            if not self._resting:
                gc.enable()
            self.set_aside()

    def set_aside(self) -> None:
        """Exempt all present objects from collections until the last user has left."""
        if self._users:
            self._has_set_aside = True
            gc.freeze()


# There is one collector in a process.
collector = _Collector()


def in_turns(runtime: Runtime, items: Collection[T]) -> Iterable[T]:
    """The items; after every few milliseconds of work on them everybody else gets a turn."""
    return items if len(items) < 2 else turns(runtime, items)


def in_turns_if_many(runtime: Runtime, items: Collection[T]) -> Iterable[T]:
    """The items, for work on each that takes some microseconds at most; ``in_turns`` if they are
    many."""
    return items if len(items) < MANY_PARTITIONS else turns(runtime, items)


def are_many(topics: Sequence[Message]) -> bool:
    """Whether these name more partitions than can be gone through without a pause."""
    if len(topics) == 1:
        return len(topics[0].partitions) >= MANY_PARTITIONS
    return len(topics) + sum([len(topic.partitions) for topic in topics]) >= MANY_PARTITIONS


def partitions_of(runtime: Runtime, request: Message) -> Iterable[tuple[TopicPartition, Message]]:
    """Each partition that a request names, with its key, in turns if they are many."""
    topics = request.topics
    pairs = (
        (named(TopicPartition, (topic.topic, each.partition)), each)
        for topic in topics
        for each in topic.partitions
    )
    return turns(runtime, pairs) if are_many(topics) else pairs


def by_topic(answers: Iterable[tuple[TopicPartition, T]]) -> Iterable[tuple[str, list[T]]]:
    """(topic, answers) for each topic, in the order in which they first come."""
    topics: dict[str, list[T]] = {}
    for key, answer in answers:
        topics.setdefault(key.topic, []).append(answer)
    return topics.items()


def in_topics(
    kind: Callable[..., T], asked: Iterable[Message], answer: Callable[..., Message]
) -> list[T]:
    """Answers of the class ``kind`` to the topics, with an ``answer`` to each partition."""
    return [kind(topic.topic, list(map(answer, topic.partitions))) for topic in asked]


def turns(runtime: Runtime, items: Iterable[T]) -> Iterator[T]:
    """The items, of which there are many; see ``in_turns``."""
    now = runtime.clock.monotonic
    until = now() + _TURN_SECONDS
    for item in items:
        yield item
        if now() > until:
            collector.set_aside()
            runtime.sleep(_PAUSE_SECONDS)
            until = now() + _TURN_SECONDS
