"""Finds where a follower's log differs from its leader's, by comparing stored bytes. Pure."""

from __future__ import annotations

from typing import NamedTuple

from kafka08.errors import KafkaError
from kafka08.message.entry import Entry
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages


class Agreement(NamedTuple):
    """``verified``: all entries below this offset agree. ``conflict``: an entry from there on
    differs."""

    verified: int
    conflict: bool


def compare(local: bytes, leader: memoryview, offset: int, *, compacted: bool) -> Agreement:
    """Compare local entries from ``offset`` on with the leader's from the same offset.

    Both may end inside an entry; only entries that both have as a whole are compared. In a
    compacted topic single messages are compared, and one that one side lacks is a gap, not a
    conflict: either side may have been cleaned further.
    """
    if local and bytes(leader[: len(local)]) == local[: len(leader)]:
        shorter = local if len(local) <= len(leader) else leader
        last = offset
        for entry in iter_entries(shorter):
            last = entry.offset + 1
        return Agreement(last, False)
    return (_compare_messages if compacted else _compare_entries)(local, leader, offset)


def _compare_entries(local: bytes, leader: memoryview, offset: int) -> Agreement:
    verified = offset
    for mine, its in zip(iter_entries(local), iter_entries(leader), strict=False):
        if _bytes_of(local, mine) != _bytes_of(leader, its):
            return Agreement(verified, True)
        verified = mine.offset + 1
    return Agreement(verified, False)


def _compare_messages(local: bytes, leader: memoryview, offset: int) -> Agreement:
    """Entries with different ends can still have different messages at the same offsets. A conflict
    counts from the last message on that both have, as what one lacks before it may be a gap, or
    never have been committed; and from the first message of the local entry, which goes whole."""
    (mine, my_end), (its, its_end) = _messages_of(local, offset), _messages_of(leader, offset)
    verified = offset
    for at, (_, message) in mine.items():
        if at in its:
            if its[at][1] != message:
                first = next(first for each, (first, _) in mine.items() if each >= verified)
                return Agreement(min(first, verified), True)
            verified = at + 1
    return Agreement(min(my_end, its_end), False)


def _messages_of(
    buffer: bytes | memoryview, offset: int
) -> tuple[dict[int, tuple[int, object]], int]:
    """By offset the first offset of the entry, and key, value, time and headers; and the end of the
    entries, which begin at ``offset``. An entry that cannot be read stands for itself."""
    found: dict[int, tuple[int, object]] = {}
    for entry in iter_entries(buffer):
        data = _bytes_of(buffer, entry)
        try:
            messages = list(iter_messages(data))
            found.update((m.offset, (messages[0].offset, m[1:3] + m[7:])) for m in messages)
        except KafkaError:
            found[entry.offset] = offset, data
        offset = entry.offset + 1
    return found, offset


def _bytes_of(buffer: bytes | memoryview, entry: Entry) -> bytes:
    return bytes(buffer[entry.position : entry.stop])
