"""Finds where a follower's log differs from its leader's, by comparing stored bytes. Pure."""

from __future__ import annotations

from typing import NamedTuple

from kafka08.errors import KafkaError
from kafka08.message.batch import header_of
from kafka08.message.entry import BATCH, Entry, magic_of
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages


class Agreement(NamedTuple):
    """``verified``: all entries below this offset agree. ``conflict``: an entry from there on
    differs. ``common``: the end of the last local entry known to be the leader's too."""

    verified: int
    conflict: bool
    common: int

    def cut_at(self, end: int, *, is_over: bool) -> int | None:
        """Where a log with this ``end`` is to be cut, None: go on from ``verified``. ``is_over``:
        one side has nothing more. The leader has cleaned the entries that it lacks at our end, or
        never had them. In the first case it has later values for the keys, so nothing is lost."""
        if self.conflict or (self.common < end and (is_over or self.verified >= end)):
            return min(self.verified, self.common)
        return None


def compare(
    local: bytes, leader: memoryview, offset: int, common: int, *, compacted: bool
) -> Agreement:
    """Compare local entries from ``offset`` on with the leader's from the same offset. ``common``:
    as found in what comes before.

    Both may end inside an entry; only entries that both have as a whole are compared. In a
    compacted topic single messages are compared, and one that one side lacks is a gap, not a
    conflict: either side may have been cleaned further.
    """
    if bytes(leader[: len(local)]) == local[: len(leader)]:
        shorter = local if len(local) <= len(leader) else leader
        ends = [entry.offset + 1 for entry in iter_entries(shorter)]
        return Agreement(ends[-1], False, ends[-1]) if ends else Agreement(offset, False, common)
    if compacted:
        return _compare_messages(local, leader, offset, common)
    return _compare_entries(local, leader, offset)


def _compare_entries(local: bytes, leader: memoryview, offset: int) -> Agreement:
    verified = offset
    for mine, its in zip(iter_entries(local), iter_entries(leader), strict=False):
        if _bytes_of(local, mine) != _bytes_of(leader, its):
            return Agreement(verified, True, verified)
        verified = mine.offset + 1
    return Agreement(verified, False, verified)


def _compare_messages(local: bytes, leader: memoryview, offset: int, common: int) -> Agreement:
    """Entries with different ends can still have different messages at the same offsets. A conflict
    counts from the last message on that both have, as what one lacks before it may be a gap, or
    never have been committed; and from the first message of the local entry, which goes whole."""
    (mine, my_end), (its, its_end) = _messages_of(local, offset), _messages_of(leader, offset)
    verified = offset
    for at, message in mine.items():
        if at in its:
            if its[at].content != message.content:
                first = next(each.first for at, each in mine.items() if at >= verified)
                return Agreement(min(first, verified), True, common)
            verified, common = at + 1, message.last + 1
    return Agreement(min(my_end, its_end), False, common)


class _Message(NamedTuple):
    """``content``: key, value, time and headers, or all bytes of an entry that has no messages to
    compare: a marker of a transaction, or one that cannot be read. ``first`` and ``last``: the
    offsets of its entry."""

    content: object
    first: int
    last: int


def _messages_of(buffer: bytes | memoryview, offset: int) -> tuple[dict[int, _Message], int]:
    """The messages by offset, and the end of the entries, which begin at ``offset``."""
    found: dict[int, _Message] = {}
    for entry in iter_entries(buffer):
        data, last = _bytes_of(buffer, entry), entry.offset
        if magic_of(data) == BATCH and header_of(data).is_control:
            found[last] = _Message(data, last, last)
            offset = last + 1
            continue
        try:
            read = list(iter_messages(data))
            found.update((m.offset, _Message(m[1:3] + m[7:], read[0].offset, last)) for m in read)
        except KafkaError:
            found[last] = _Message(data, offset, last)
        offset = last + 1
    return found, offset


def _bytes_of(buffer: bytes | memoryview, entry: Entry) -> bytes:
    return bytes(buffer[entry.position : entry.stop])
