"""Units: the messages that the storage model appends and finds, and checks of its files.

The messages of a unit are stored as one entry, a plain one or a wrapper. ``SetMaker`` makes
sets of them as clients and leaders send them; ``stored_units`` reads them back.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from struct import Struct
from typing import NamedTuple

from kafka08.message.compression import compress
from kafka08.message.entry import encode_entry
from kafka08.message.sets import iter_messages

FIRST_TIME = 1_400_000_000_000

_header_at = Struct(">qi").unpack_from

Pair = tuple[bytes | None, bytes | None]


class Unit(NamedTuple):
    """Messages (offset, key, value) that are stored as one entry: all of them or none."""

    last: int
    messages: tuple[tuple[int, bytes | None, bytes | None], ...]


class Stored(NamedTuple):
    """A segment as its files show it: entries as (offset, position, end)."""

    base: int
    data: bytes
    entries: list[tuple[int, int, int]]


class SetMaker:
    """Random message sets as producers and leaders send them, and the units they are.

    ``offset`` is what the next message gets; ``codec`` the last one used.
    """

    def __init__(self, rng: random.Random, offset: int, topic: str) -> None:
        self.rng = rng
        self.offset = offset
        self.plain = topic == "plain"
        self.keyed = topic == "keyed"
        self.codec = 0

    def make(self, *, numbered: bool = False) -> tuple[bytes, list[Unit]]:
        """The bytes, and the units they become. ``numbered`` sets carry their offsets."""
        parts: list[bytes] = []
        units: list[Unit] = []
        timed = not self.plain and self.rng.random() < 0.3
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            if self.plain or timed or self.rng.random() < 0.5:
                key, value = self._pair()
                time = FIRST_TIME + self.rng.randrange(10_000) if timed else None
                offset = self.offset if numbered else 0
                parts.append(encode_entry(key, value, offset, timestamp=time))
                units.append(Unit(self.offset, ((self.offset, key, value),)))
                self.offset += 1
            else:
                entry, unit = self._wrapper(numbered)
                parts.append(entry)
                units += [unit] if unit else []
        if not numbered and self.rng.random() < 0.15:
            parts.append(encode_entry(None, b"cut")[: self.rng.randint(1, 20)])
        return b"".join(parts), units

    def _pair(self) -> Pair:
        rng = self.rng
        key = rng.choice((None, b"", b"k%d" % rng.randrange(9), b"k%d" % rng.randrange(9)))
        if self.keyed:
            key = b"k%d" % rng.randrange(9)
        value = rng.choice((None, b"", rng.randbytes(rng.randint(0, 12)) * 2, b"v" * 30))
        return key, value

    def _wrapper(self, numbered: bool) -> tuple[bytes, Unit | None]:
        rng = self.rng
        count = rng.choice((0, 1, 1, 2, 3, 5)) if not numbered else rng.randint(1, 5)
        codec = rng.choice((1, 2, 3))
        pairs = [self._pair() for _ in range(count)]
        stored = self._inner_offsets(count)
        last = self.offset + count - 1
        truths = list(range(self.offset, last + 1))
        if count and rises(stored) and stored[-1] == last and stored != truths:
            # would be taken for true offsets with gaps
            if numbered:
                stored = truths
            else:
                truths = [offset + 1 for offset in truths]
                last += 1
        leaves = [encode_entry(k, v, at) for (k, v), at in zip(pairs, stored, strict=True)]
        inner = b"".join(leaves)
        if count > 1 and rng.random() < 0.15:
            nested = b"".join(leaves[: count // 2])
            inner = encode_entry(None, compress(1, nested), 0, 1) + b"".join(leaves[count // 2 :])
        key = rng.choice((None, None, b"wk"))
        entry = encode_entry(key, compress(codec, inner), last if numbered else 7, codec)
        if not count:
            return entry, None
        self.codec = codec
        self.offset = last + 1
        return entry, Unit(
            last, tuple((at, k, v) for at, (k, v) in zip(truths, pairs, strict=True))
        )

    def _inner_offsets(self, count: int) -> list[int]:
        """Right ones, and every way of wrong ones that producers have."""
        rng, first = self.rng, self.offset
        how = rng.randrange(7)
        if how < 2:
            return list(range(count))
        if how == 2:
            return list(range(first, first + count))
        if how == 3:
            return [rng.choice((0, -1, first))] * count
        if how == 4:  # rising with gaps up to the wrapper's own
            gaps = sorted(rng.sample(range(2 * count + 1), count))
            return [first + count - 1 - (gaps[-1] - gap) for gap in gaps] if count else []
        return [rng.randint(-3, first + 9) for _ in range(count)]


def rises(offsets: list[int]) -> bool:
    return all(a < b for a, b in pairwise(offsets))


def joined(units: list[Unit]) -> Unit:
    """The unit of a set that is stored as one wrapper, with new offsets for its messages."""
    messages = [message for unit in units for message in unit.messages]
    first = units[-1].last - len(messages) + 1
    return Unit(
        units[-1].last, tuple((first + i, key, value) for i, (_, key, value) in enumerate(messages))
    )


def entries_of(data: bytes) -> Iterator[tuple[int, int, int]]:
    """(offset, position, end) of the whole entries; stops at what is none."""
    position = 0
    while position + 26 <= len(data):
        offset, size = _header_at(data, position)
        end = position + 12 + size
        if size < 14 or end > len(data):
            return
        yield offset, position, end
        position = end


def stored_units(segments: list[Stored]) -> Iterator[Unit]:
    """The messages of each stored entry, crcs checked."""
    for _, data, entries in segments:
        for offset, position, end in entries:
            messages = tuple(
                [(m.offset, m.key, m.value) for m in iter_messages(data[position:end])]
            )
            yield Unit(offset, messages)


def check_compacted(old: list[Unit], new: list[Unit], below: int) -> None:
    """Of the messages below an offset only superseded ones and tombstones may be missing."""
    have = {message for unit in new for message in unit.messages}
    last = {m[1]: m[0] for unit in old for m in unit.messages}
    kept = {m[1]: m[0] for unit in new for m in unit.messages}
    for unit in old:
        for message in unit.messages:
            offset, key, value = message
            superseded = max(last[key], kept.get(key, -1)) > offset
            if offset < below and message not in have and value is not None and not superseded:
                raise AssertionError(f"{offset}, the last of {key!r}, is gone")
            if offset < below and superseded and last[key] < below and message not in have:
                later = (kept.get(key, -1) >= last[key]) or _is_tombstone(old, last[key])
                assert later, f"{offset} is gone, and {last[key]}, which superseded it, too"


def _is_tombstone(units: list[Unit], offset: int) -> bool:
    return any(m[0] == offset and m[2] is None for unit in units for m in unit.messages)


def check_index(entries: list[tuple[int, int]], stored: Stored) -> None:
    """Each index entry, (offset, position), names an offset above the previous log entry's, and at
    most its target's."""
    before = {position: offset for offset, _, position in stored.entries}
    targets = {position: offset for offset, position, _ in stored.entries}
    last = (stored.base - 1, -1)
    for offset, position in entries:
        assert offset > last[0] and position > last[1], f"{stored.base}: index does not rise"
        assert position in targets, f"{stored.base}: index points at {position}, no entry"
        assert before.get(position, stored.base - 1) < offset <= targets[position], (
            f"{stored.base}: index has {offset} at {position}, of {targets[position]}"
        )
        last = (offset, position)


def wanted(segments: list[Stored], offset: int, max_bytes: int, hw: int | None, leo: int) -> bytes:
    """The bytes that a read must give."""
    if offset == leo:
        return b""
    if hw is not None and hw < offset:
        hw = offset
    if hw is not None and hw >= leo:
        hw = None
    first = max(i for i, s in enumerate(segments) if s.base <= offset)
    for _, data, entries in segments[first:]:
        start = next((position for at, position, _ in entries if at >= offset), None)
        if start is None:
            continue
        end = len(data)
        if hw is not None:
            end = next((p for at, p, _ in entries if at >= hw and p >= start), end)
        return data[start : min(end, start + max_bytes)]
    return b""


def shown(units: list[Unit]) -> str:
    """Offsets only: first-last of each unit."""
    return " ".join(
        f"{u.messages[0][0]}-{u.last}" if len(u.messages) > 1 else str(u.last) for u in units
    )
