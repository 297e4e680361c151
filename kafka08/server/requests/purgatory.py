"""Where requests wait for partitions to move (kafka.server.RequestPurgatory).

A connection's greenlet serves one request at a time, so a waiting request is simply a greenlet
that sleeps on an event: no callbacks and no reaper. Code that moves a partition (append, high
watermark, leadership) calls ``notify``, which never waits and never runs the waiter's code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from kafka08.common import TopicPartition
from kafka08.network.peer import Peer, current_peer
from kafka08.runtime import Runtime

# The longest wait, even if a request asks for more: 5 minutes. Clients ask for seconds.
MAX_WAIT_MS = 300_000


class _Watches:
    """The waiting requests of each partition; shared by a purgatory and its watches."""

    __slots__ = ("by_key", "closed")

    def __init__(self) -> None:
        self.by_key: dict[TopicPartition, set[Watch]] = {}
        self.closed = False

    def add(self, watch: Watch, keys: Iterable[TopicPartition]) -> None:
        for key in keys:
            self.by_key.setdefault(key, set()).add(watch)

    def remove(self, watch: Watch, keys: Iterable[TopicPartition]) -> None:
        for key in keys:
            watches = self.by_key.get(key)
            if watches is not None:
                watches.discard(watch)
                if not watches:
                    del self.by_key[key]


class Watch:
    """One waiting request: the partitions it cares for, and those that moved since it looked.

    Open it (``with``) before checking the state it waits for, so that no move is missed.
    """

    def __init__(
        self,
        watches: _Watches,
        runtime: Runtime,
        keys: Iterable[TopicPartition],
        wait_ms: int,
        peer: Peer | None,
        sender: Peer | None,
    ) -> None:
        self._watches = watches
        self._clock = runtime.clock
        self._deadline = runtime.clock.monotonic() + min(wait_ms, MAX_WAIT_MS) / 1000
        self._peer = peer
        self._sender = sender
        self._event = runtime.event()
        self._keys = tuple(keys)
        self._moved: set[TopicPartition] = set()

    def __enter__(self) -> Watch:
        self._watches.add(self, self._keys)
        if self._peer is not None:
            self._peer.wake = self.wake
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._peer is not None:
            self._peer.wake = None
        self._watches.remove(self, self._keys)

    def wait(self) -> set[TopicPartition]:
        """The partitions that moved since the last call; empty if waiting is of no more use."""
        while not self._moved:
            now = self._clock.monotonic()
            left = self._deadline - now
            if left <= 0 or self._watches.closed:
                return set()
            if self._peer is not None and self._peer.has_ended:
                return set()
            self._event.wait(left)
            if self._sender is not None:
                self._sender.waited += self._clock.monotonic() - now
        moved, self._moved = self._moved, set()
        self._event.clear()
        return moved

    @property
    def is_over(self) -> bool:
        """Whether the time to wait is over."""
        return self._clock.monotonic() >= self._deadline

    def notify(self, key: TopicPartition) -> None:
        """``key`` moved."""
        self._moved.add(key)
        self._event.set()

    def wake(self) -> None:
        """End the wait so that the request checks its state again."""
        self._event.set()


class Purgatory:
    """Watches by partition. If ``for_peers``, a watch ends when the request's sender has left."""

    def __init__(self, runtime: Runtime, *, for_peers: bool = False) -> None:
        self._runtime = runtime
        self._for_peers = for_peers
        self._watches = _Watches()
        self._by_key = self._watches.by_key

    def watch(self, keys: Iterable[TopicPartition], wait_ms: int) -> Watch:
        """A watch on ``keys`` that gives up ``wait_ms`` from now, or after MAX_WAIT_MS."""
        sender = current_peer.get()
        peer = sender if self._for_peers else None
        return Watch(self._watches, self._runtime, keys, wait_ms, peer, sender)

    def wait(
        self,
        keys: Collection[TopicPartition],
        wait_ms: int,
        settle: Callable[[TopicPartition], bool],
    ) -> set[TopicPartition]:
        """Wait until ``settle`` is true of every key; it is asked now, and of a key that moved.
        Returns those that are not settled when waiting is of no more use."""
        with self.watch(keys, wait_ms) as watch:
            waiting = {key for key in keys if not settle(key)}
            while waiting and (moved := watch.wait()):
                waiting -= {key for key in moved & waiting if settle(key)}
            return waiting

    def notify(self, key: TopicPartition) -> None:
        """``key`` moved: wake every request that waits for it."""
        if not self._by_key:  # the common case; saves hashing the key
            return
        watches = self._by_key.get(key)
        if watches:
            for watch in watches:
                watch.notify(key)

    def close(self) -> None:
        """End all waits: each request answers with what it has."""
        self._watches.closed = True
        for watches in list(self._by_key.values()):
            for watch in watches:
                watch.wake()

    @property
    def entries(self) -> int:
        """Partitions waited for, counted for each request."""
        return sum(map(len, self._by_key.values()))

    def __len__(self) -> int:
        """Requests waiting."""
        return len({watch for watches in self._by_key.values() for watch in watches})
