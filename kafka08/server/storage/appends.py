"""Producers' sets on their way into the log: short ones at once, long ones checked elsewhere.

The slow steps are to open the wrappers of a set and to check its crcs. Another thread does
both and numbers the set from where the log ends at that moment. Back on the loop the partition is
looked at again: what was appended meanwhile only moves the set's offsets, and the write itself is
one step as ever. Nothing of a set is written before all of it was checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from kafka08.common import TopicPartition
from kafka08.errors import RequestTimedOutError
from kafka08.log.log import Log
from kafka08.log.numbering import LogAppendInfo, Numbered
from kafka08.message.compression import InflatesTooFarError
from kafka08.message.sets import Opened
from kafka08.runtime import Lock, Runtime
from kafka08.server.requests.long_work import LOOP_BYTES, LOOP_STORED_BYTES, SMALL_BYTES, LongWork
from kafka08.server.storage.replica_manager import ReplicaManager

# The sets of one request may inflate to this size, or to this many times the request's bytes.
REQUEST_BYTES: Final = 128 << 20
REQUEST_RATIO: Final = 16
# To move more entries than this also takes long; such a set is numbered again on another thread.
_MOVED_ENTRIES = 20_000
_TRIES: Final = 8


class InflateBudget:
    """How many bytes a request with these sets may inflate, and how many it has inflated so far."""

    __slots__ = ("inflated", "sets")

    def __init__(self, sets: Mapping[TopicPartition, memoryview]) -> None:
        self.inflated = 0
        self.sets = sets

    @property
    def left(self) -> int:
        stored = sum([len(data) for data in self.sets.values()])
        return max(REQUEST_BYTES, REQUEST_RATIO * stored) - self.inflated


class Appends:
    """Appends one set at a time."""

    def __init__(self, runtime: Runtime, replicas: ReplicaManager, long_work: LongWork) -> None:
        self._runtime = runtime
        self._replicas = replicas
        self._long_work = long_work
        self._locks: dict[TopicPartition, tuple[Lock, list[None]]] = {}

    def append(
        self, key: TopicPartition, data: memoryview, acks: int, room: InflateBudget
    ) -> LogAppendInfo:
        """Append a set as leader; may wait if it is long.

        Raises as ReplicaManager.append does, InflatesTooFarError also when the request has no
        room left, and RequestTimedOutError for a long set that others keep overtaking: nothing of
        it was written.
        """
        if len(data) <= LOOP_STORED_BYTES:
            try:
                # While nothing was inflated all room is left, which need not be added up then.
                at_once = min(room.left, LOOP_BYTES) if room.inflated else LOOP_BYTES
                opened = Opened(at_once)
                appended = self._replicas.append_messages(key, data, acks, opened)
                room.inflated += at_once - opened.room
                return appended
            except InflatesTooFarError:
                if room.left <= LOOP_BYTES:
                    raise
        lock, users = self._locks.setdefault(key, (self._runtime.lock(), []))
        users.append(None)
        try:
            with lock:  # otherwise long sets could overtake each other without end
                return self._append_long(key, data, acks, room)
        finally:
            users.pop()
            if not users:
                del self._locks[key]

    def _append_long(
        self, key: TopicPartition, data: memoryview, acks: int, room: InflateBudget
    ) -> LogAppendInfo:
        replicas = self._replicas
        for _ in range(_TRIES):
            log = replicas.writable(key, acks).leader_log()
            config, rules, base = log.config, log.rules, log.log_end_offset

            number = partial(_number, log, data, base)
            try:
                numbered, inflated = self._long_work.run(number, room.left, len(data))
            except InflatesTooFarError:
                room.inflated += room.left
                raise
            data = data[: numbered.found.valid_bytes]  # numbering may have moved bytes up
            is_same = replicas.writable(key, acks).leader_log() is log
            if is_same and log.config is config and log.rules is rules:
                movable = numbered.movable and numbered.found.entries <= _MOVED_ENTRIES
                if log.log_end_offset == base or movable:
                    room.inflated += inflated
                    return replicas.append_messages(key, data, acks, numbered=numbered)
        raise RequestTimedOutError(f"{key} is too busy for a set of {len(data)} bytes")


def _number(log: Log, data: memoryview, base: int, room: int) -> tuple[Numbered, int]:
    """The set, and how many bytes its wrappers inflated to. To be called on any thread."""
    opened = Opened(room)
    numbered = log.number(data, base, opened=opened, rebuild=room <= SMALL_BYTES)
    return numbered, room - opened.room
