"""The messages of a topic with keys, of which compaction and retention remove old ones.

Raises AssertionError as soon as those who send and read them know what cannot all be true.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tests.simulation.ledger import MessagePlace


class Policy(NamedTuple):
    """The messages that a topic may remove, by its settings. ``compacts``: those whose key has a
    later one. ``keeps``: so many messages at the end of a log always stay."""

    settings: Mapping[str, str]
    compacts: bool
    keeps: int = 0


_MESSAGE_BYTES = 200
"""More than a message takes in any format."""
_KEPT_BYTES = 8_000
_COMPACTED = {
    "segment.bytes": "600",
    "min.cleanable.dirty.ratio": "0.1",
    "delete.retention.ms": "5000",
}
POLICIES = (
    Policy({"cleanup.policy": "compact", **_COMPACTED}, compacts=True),
    Policy(
        {"cleanup.policy": "compact,delete", "retention.ms": "60000", **_COMPACTED}, compacts=True
    ),
    Policy(
        {"retention.bytes": str(_KEPT_BYTES), "segment.bytes": "600"},
        compacts=False,
        keeps=_KEPT_BYTES // _MESSAGE_BYTES,
    ),
    Policy({"retention.ms": "20000", "segment.bytes": "600"}, compacts=False),
)


class Keyed(NamedTuple):
    """A message; without a value it deletes its key."""

    key: bytes
    value: bytes | None


class KeyedLedger:
    """The messages of one topic with this ``policy``."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._sent = 0
        self._known: dict[MessagePlace, Keyed] = {}
        self._acknowledged: dict[MessagePlace, Keyed] = {}
        self._deleted: set[bytes] = set()

    def send(self, key: bytes, *, deletes: bool = False) -> Keyed:
        """The next message of a key."""
        self._sent += 1
        if deletes:
            self._deleted.add(key)
        return Keyed(key, None if deletes else b"%d" % self._sent)

    def acknowledge(self, place: MessagePlace, message: Keyed) -> None:
        """All of the isr has it."""
        self.see(place, message)
        self._acknowledged[place] = message

    def see(self, place: MessagePlace, message: Keyed) -> None:
        other = self._known.setdefault(place, message)
        assert other == message, f"{place} was {other} and is {message}"

    def due(self, partition: int) -> dict[int, Keyed]:
        """The messages acknowledged by now, by offset: a reader that begins now finds them, unless
        they may have been removed."""
        return {
            place.offset: message
            for place, message in self._acknowledged.items()
            if place.partition == partition
        }

    def check_pass(
        self, due: Mapping[int, Keyed], found: Mapping[int, Keyed], start: int, end: int
    ) -> None:
        """A reader has ``found`` these in a partition, which begins at ``start`` by now, and was
        read up to ``end``. ``due``: from before it began."""
        newest: dict[bytes, int] = {}
        for offset, message in found.items():
            newest[message.key] = max(offset, newest.get(message.key, offset))
        oldest = min(start, end - self.policy.keeps)
        lost = [
            f"{message} at {offset}"
            for offset, message in due.items()
            if offset >= oldest
            and offset not in found
            and not self._may_go(offset, message, newest)
        ]
        assert not lost, f"lost between {start} and {end}: {', '.join(lost)}"

    def _may_go(self, offset: int, message: Keyed, newest: Mapping[bytes, int]) -> bool:
        """Whether its key has a later message, or one that deleted it and has gone as well."""
        if not self.policy.compacts:
            return False
        return newest.get(message.key, -1) > offset or message.key in self._deleted
