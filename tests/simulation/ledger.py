"""The messages of a topic as those who send and read them know them.

Raises AssertionError as soon as two of them know what cannot both be true. Each value is sent once,
or again and again by an idempotent producer: in the log it is once at most, unless the first was
deleted. A replica that is new copies what is left of the log, and knows no producer of what is not.
Key, timestamp and header of a message follow from its value, so that every reader can check them.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple
from zlib import crc32

from tests.simulation.runtime import EPOCH_MS

HEADER = "of"


class MessagePlace(NamedTuple):
    """Of a message."""

    partition: int
    offset: int


class InGeneration(NamedTuple):
    """A partition in a generation of the group."""

    partition: int
    generation: int


def key_of(value: bytes) -> bytes:
    return b"key of " + value


def time_of(value: bytes) -> int:
    """The timestamp of its message, ms."""
    return EPOCH_MS + crc32(value) % 1000


class Ledger:
    """The messages of one topic. ``acknowledged`` by the whole isr, by place; ``hoped``: by a
    leader alone, which may lose them; ``seen`` by place; ``sent``: how many values there were.
    ``deleted_until``: the offsets below which somebody asked to delete;
    ``starts``: below which a leader said that it was done. ``newest_generation`` of
    the group in which members own its partitions."""

    def __init__(self) -> None:
        self.acknowledged: dict[MessagePlace, bytes] = {}
        self.hoped: dict[bytes, MessagePlace] = {}
        self.seen: dict[MessagePlace, bytes] = {}
        self.sent = 0
        self.deleted_until: Counter[int] = Counter()
        self.starts: Counter[int] = Counter()
        self.newest_generation = 0
        self._delivered: Counter[int] = Counter()
        self._owners: dict[InGeneration, str] = {}
        self._places: dict[bytes, MessagePlace] = {}
        self._unseen: dict[MessagePlace, bytes] = {}
        self._producers: set[int] = set()

    def new_values(self, count: int) -> list[bytes]:
        first, self.sent = self.sent, self.sent + count
        return [b"%d" % number for number in range(first, self.sent)]

    def acknowledge(self, place: MessagePlace, value: bytes) -> None:
        """All of the isr has it: it must never be lost."""
        other = self.acknowledged.setdefault(place, value)
        assert other == value, f"{place} was acknowledged for {other!r} and for {value!r}"
        if place not in self.seen:
            self._unseen[place] = value
        self._agree(place)

    def hope(self, place: MessagePlace, value: bytes) -> None:
        """The leader has it: it may be lost, and is nowhere else."""
        self.hoped[value] = place
        self._is_once(place, value)

    def see(self, place: MessagePlace, value: bytes) -> None:
        other = self.seen.setdefault(place, value)
        assert other == value, f"{place} was seen as {other!r} and is {value!r} now"
        self._unseen.pop(place, None)
        self._is_once(place, value)
        self._places[value] = place
        self._agree(place)

    def _is_once(self, place: MessagePlace, value: bytes) -> None:
        for known in (self.hoped.get(value, place), self._places.get(value, place)):
            is_kept = known.offset >= self.deleted_until[known.partition]
            assert known == place or not is_kept, f"{value!r} is at {known} and at {place}"

    def _agree(self, place: MessagePlace) -> None:
        acknowledged, seen = self.acknowledged.get(place), self.seen.get(place)
        assert acknowledged is None or seen is None or acknowledged == seen, (
            f"{place} was acknowledged for {acknowledged!r} and is {seen!r}"
        )

    @property
    def lost(self) -> dict[MessagePlace, bytes]:
        """The values that the isr acknowledged, that nobody asked to delete and nobody has seen."""
        return {
            place: value
            for place, value in self._unseen.items()
            if place.offset >= self.deleted_until[place.partition]
        }

    @property
    def dashed(self) -> int:
        """How many of the values that a leader alone acknowledged are not where it put them."""
        return sum(self.seen.get(place) != value for value, place in self.hoped.items())

    # Idempotent producers

    def name_producer(self, producer_id: int) -> None:
        """No other producer has this id."""
        assert producer_id not in self._producers, f"two producers have the id {producer_id}"
        self._producers.add(producer_id)

    def check_order(self, values: dict[int, list[bytes]]) -> None:
        """``values``, by partition, were all acknowledged in this order: they are so in the log.
        Asked when all has been seen."""
        for partition, sent in values.items():
            found = [self._places.get(value) for value in sent]
            kept = [place.offset for place in found if place is not None]
            assert kept == sorted(set(kept)), f"{sent} of partition {partition} are at {kept}"
            missing = [at for at, place in enumerate(found) if place is None]
            assert missing == list(range(len(missing))), f"{sent[missing[-1]]!r} is lost"
            assert not missing or self.deleted_until[partition], f"{sent[0]!r} is lost"

    # Groups

    def own(self, place: InGeneration, member: str) -> None:
        """A member owns a partition in a generation."""
        other = self._owners.setdefault(place, member)
        assert other == member, f"{other} and {member} own {place}"

    def deliver(self, place: MessagePlace) -> None:
        """A group got this message, which is none after one that it did not get."""
        end = max(self._delivered[place.partition], self.deleted_until[place.partition])
        assert place.offset <= end, f"a group has read up to {end} and gets {place}"
        self._delivered[place.partition] = max(end, place.offset + 1)
