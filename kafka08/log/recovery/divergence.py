"""Finds where a follower's log differs from its leader's, by comparing stored bytes. Pure."""

from __future__ import annotations

from typing import NamedTuple

from kafka08.errors import KafkaError
from kafka08.message.entry import BATCH, Entry
from kafka08.message.scan import iter_entries
from kafka08.message.sets import iter_messages


class Agreement(NamedTuple):
    """``verified``: all entries below this offset agree. ``conflict``: the entry there differs."""

    verified: int
    conflict: bool


def compare(local: bytes, leader: memoryview, offset: int, *, compacted: bool) -> Agreement:
    """Compare local entries from ``offset`` on with the leader's from the same offset.

    Both may end inside an entry; only entries that both have as a whole are compared. In a
    compacted topic an entry that one side lacks is a gap, not a conflict: either side may have
    been cleaned further. The same holds within wrappers: only messages in both are compared.
    """
    if local and bytes(leader[: len(local)]) == local[: len(leader)]:
        shorter = local if len(local) <= len(leader) else leader
        last = offset
        for entry in iter_entries(shorter):
            last = entry.offset + 1
        return Agreement(last, False)
    ours, theirs = iter_entries(local), iter_entries(leader)
    mine, its = next(ours, None), next(theirs, None)
    verified = offset
    while mine is not None and its is not None:
        if mine.offset == its.offset:
            ours_bytes, theirs_bytes = _bytes_of(local, mine), _bytes_of(leader, its)
            if ours_bytes != theirs_bytes and not (
                compacted
                and _holds_several(mine)
                and _holds_several(its)
                and _same_messages(ours_bytes, theirs_bytes)
            ):
                return Agreement(verified, True)
            verified = mine.offset + 1
            mine, its = next(ours, None), next(theirs, None)
        elif not compacted:
            return Agreement(verified, True)
        elif mine.offset < its.offset:
            verified = mine.offset + 1
            mine = next(ours, None)
        else:
            verified = its.offset + 1
            its = next(theirs, None)
    return Agreement(verified, False)


def _bytes_of(buffer: bytes | memoryview, entry: Entry) -> bytes:
    return bytes(buffer[entry.position : entry.position + entry.size_total])


def _holds_several(entry: Entry) -> bool:
    """Whether there may be several messages in the entry, some of which compaction removes."""
    return entry.codec > 0 or entry.magic == BATCH


def _same_messages(mine: bytes, its: bytes) -> bool:
    """Whether two wrappers have equal messages at each offset that both have."""
    try:
        known = {message.offset: message[1:3] for message in iter_messages(mine)}
        return all(known.get(m.offset, m[1:3]) == m[1:3] for m in iter_messages(its))
    except KafkaError:
        return False
