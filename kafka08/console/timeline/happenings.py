"""One event of the timeline of a cluster, and the kinds of events."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from kafka08.common import TopicPartition
from kafka08.console.shown import number

BROKER, CONTROLLER, LEADER, REPLICA = "broker", "controller", "leader", "replica"
MOVE, TOPIC, SETTING, OFFSETS, GROUP, GAP = "move", "topic", "setting", "offsets", "group", "gap"
ACCESS = "access"
KINDS = {
    BROKER: "brokers",
    CONTROLLER: "controller",
    LEADER: "leaders",
    REPLICA: "replicas in sync",
    MOVE: "moves",
    TOPIC: "topics",
    SETTING: "settings",
    OFFSETS: "offsets set",
    GROUP: "groups",
    ACCESS: "access",
    GAP: "not seen",
}
EVERYWHERE = (BROKER, CONTROLLER, GAP)
"""Kinds that concern every topic and group."""

MOST_TEXT = 300
MOST_NAMES = 2000
"""Characters of an event's text, and of its names together."""
_LISTED = 3


class Happening(NamedTuple):
    """Seen at ``time_ms``, and not yet at ``since_ms``. ``names``: the topics, groups and brokers
    that it is about, without ``more`` others."""

    time_ms: int
    since_ms: int
    kind: str
    text: str
    names: tuple[str, ...] = ()
    more: int = 0

    def has(self, word: str) -> bool:
        """In the text or a name, in any case of letters."""
        word = word.lower()
        return any(word in each.lower() for each in (self.text, *self.names))


def happening(
    times: tuple[int, int], kind: str, text: str, names: Collection[str] = ()
) -> Happening:
    """``times``: of the last look before it, and of the look that found it. Text and names are cut
    to their bounds."""
    kept: list[str] = []
    left = MOST_NAMES
    for name in sorted(map(_encodable, names)):
        left -= len(name)
        if left < 0:
            break
        kept.append(name)
    text = _encodable(text)
    cut = text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 3] + "..."
    return Happening(times[1], times[0], kind, cut, tuple(kept), len(names) - len(kept))


def _encodable(text: str) -> str:
    """Text that a file can keep."""
    return text.encode("utf-8", "replace").decode()


def listed(names: Collection[str]) -> str:
    """a, b, c and 9 more."""
    some, more = sorted(names)[:_LISTED], len(names) - _LISTED
    return ", ".join(some) + (f" and {number(more)} more" if more > 0 else "")


def partitions(found: Collection[TopicPartition]) -> str:
    """The name of one partition, or the number of several with their topics."""
    if len(found) == 1:
        [only] = found
        return f"partition {only.topic}-{only.partition}"
    return f"{number(len(found))} partitions of {listed(topics_of(found))}"


def topics_of(found: Iterable[TopicPartition]) -> set[str]:
    return {tp.topic for tp in found}
