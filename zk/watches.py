"""Turns one-shot watches into events on their owner's queue.

A read arms its watch first, so that no change is missed between the two. A watch that fires posts
the event given with the read and ends: the owner reads again, which arms a new watch, and compares
full states. When a connection is lost kazoo drops its watches. When it is back, all armed events
are posted, since any node may have changed. After an expiry no event is posted: the owner learns
of the new session and reads all nodes again. Does not interpret the events.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from zk.client import SessionState, Watch, ZkClient
from zk.errors import NoNodeError


class WatchSet:
    """The watches of one owner. ``post`` gets its events and must only enqueue them."""

    def __init__(self, client: ZkClient, post: Callable[[Any], None]) -> None:
        self._client = client
        self._post = post
        self._armed: dict[tuple[str, str, Hashable], Watch] = {}
        # Never held across a switch, so a plain lock also works for greenlets.
        self._lock = threading.Lock()
        client.on_state(self._state_changed)

    def children(self, path: str, event: Hashable) -> list[str] | None:
        """The names below ``path``; None if the node does not exist.

        ``event`` is posted when a child, or the node itself, is created or deleted.
        """
        watch = self._watch("children", path, event)
        while True:
            try:
                return self._client.children(path, watch)
            except NoNodeError:
                if self._client.exists(path, watch) is None:
                    return None

    def data(self, path: str, event: Hashable) -> tuple[bytes, int] | None:
        """Data and version; None if the node does not exist.

        ``event`` is posted when the data changes, or the node is created or deleted.
        """
        watch = self._watch("data", path, event)
        while True:
            try:
                data, stat = self._client.get(path, watch)
                return data, stat.version
            except NoNodeError:
                if self._client.exists(path, watch) is None:
                    return None

    def data_of_all(self, events: Mapping[str, Hashable]) -> list[tuple[bytes, int] | None]:
        """``data`` of many nodes, with their ``events`` by path; many requests at a time."""
        watches = {path: self._watch("data", path, event) for path, event in events.items()}
        return [
            self.data(path, events[path]) if found is None else (found[0], found[1].version)
            for path, found in zip(events, self._client.get_all(list(events), watches), strict=True)
        ]

    def forget(self, path: str) -> None:
        """Stop posting events of ``path``; a watch that is still armed there is ignored."""
        with self._lock:
            self._armed = {key: watch for key, watch in self._armed.items() if key[1] != path}

    def clear(self) -> None:
        with self._lock:
            self._armed.clear()

    def _watch(self, kind: str, path: str, event: Hashable) -> Watch:
        """The callable for these arguments, always the same one: kazoo keeps watches in sets, so
        arming a watch twice has no effect."""
        key = (kind, path, event)

        def fired(watched: Any) -> None:
            with self._lock:
                if watched.type == "NONE" or self._armed.get(key) is not fired:
                    return
                del self._armed[key]
            self._post(event)

        with self._lock:
            return self._armed.setdefault(key, fired)

    def _state_changed(self, state: SessionState) -> None:
        if state is SessionState.SUSPENDED:
            return
        with self._lock:
            lost = [event for _, _, event in self._armed]
            self._armed.clear()
        if state is SessionState.CONNECTED:
            for event in dict.fromkeys(lost):
                self._post(event)
