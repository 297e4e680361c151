"""Which topics a filter subscription covers (kafka.consumer.TopicFilter).

A filter is a Java regex that every member of the group evaluates for every other member; keep
to what ``re`` and Java share, or assignments diverge. References back to a group are refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka08.common import OFFSETS_TOPIC
from kafka08.consumer.patterns import Pattern

WHITE_LIST = "white_list"
BLACK_LIST = "black_list"
STATIC = "static"


def normalise(raw: str) -> str:
    """A filter as registered: trimmed, commas are alternatives, no blanks, no outer quotes.

    Raises ConfigError for a regex that does not compile.
    """
    regex = raw.strip().replace(",", "|").replace(" ", "").strip("\"'")
    Pattern(regex)
    return regex


class TopicFilter:
    """A normalised regex matched against whole topic names; ``pattern`` is its registered kind."""

    pattern = ""

    def __init__(self, regex: str) -> None:
        self.regex = normalise(regex)
        self._pattern = Pattern(self.regex)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.regex!r})"

    def _chosen(self, topics: set[str]) -> set[str]:
        return self._pattern.covered(topics)

    def allows(self, topic: str, *, exclude_internal: bool = True) -> bool:
        """Whether a subscription by this filter takes in ``topic``."""
        return bool(self.select([topic], exclude_internal=exclude_internal))

    def select(self, topics: Iterable[str], *, exclude_internal: bool = True) -> list[str]:
        """The covered ones of ``topics``, sorted.

        Raises ConfigError if the regex takes too many steps to tell.
        """
        internal = {OFFSETS_TOPIC} if exclude_internal else set()
        return sorted(self._chosen(set(topics) - internal))


class Whitelist(TopicFilter):
    """Topics that match."""

    pattern = WHITE_LIST


class Blacklist(TopicFilter):
    """Topics that do not match."""

    pattern = BLACK_LIST

    def _chosen(self, topics: set[str]) -> set[str]:
        return topics - super()._chosen(topics)


def filter_for(pattern: str, regex: str) -> TopicFilter:
    """The filter behind a registration's ``pattern`` and regex."""
    return Blacklist(regex) if pattern == BLACK_LIST else Whitelist(regex)
