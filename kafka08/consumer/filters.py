"""The topics that a filter subscription covers (kafka.consumer.TopicFilter).

A filter is a Java regex that every member of the group evaluates for every other member. Use only
syntax with the same meaning in ``re`` and Java, or assignments differ. Back-references are refused.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka08.common import INTERNAL_TOPICS
from kafka08.consumer.patterns import Pattern
from zk.znodes import BLACK_LIST, WHITE_LIST


def normalise(raw: str) -> str:
    """A filter as registered: commas separate alternatives, blanks and outer quotes are removed.

    Raises ConfigError for a regex that does not compile.
    """
    regex = raw.strip().replace(",", "|").replace(" ", "").strip("\"'")
    Pattern(regex)
    return regex


class TopicFilter:
    """A normalised regex that must match whole topic names. ``pattern``: its registered kind."""

    pattern = ""

    def __init__(self, regex: str) -> None:
        self.regex = normalise(regex)
        self._pattern = Pattern(self.regex)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.regex!r})"

    def _chosen(self, topics: set[str]) -> set[str]:
        return self._pattern.covered(topics)

    def allows(self, topic: str, *, exclude_internal: bool = True) -> bool:
        return bool(self.select([topic], exclude_internal=exclude_internal))

    def select(self, topics: Iterable[str], *, exclude_internal: bool = True) -> list[str]:
        """Those of ``topics`` that the filter covers, sorted.

        Raises ConfigError if the regex takes too many steps.
        """
        internal = set(INTERNAL_TOPICS) if exclude_internal else set()
        return sorted(self._chosen(set(topics) - internal))


class Whitelist(TopicFilter):
    """Topics that match."""

    pattern = WHITE_LIST


class Blacklist(TopicFilter):
    """Covers topics that do not match."""

    pattern = BLACK_LIST

    def _chosen(self, topics: set[str]) -> set[str]:
        return topics - super()._chosen(topics)


def filter_for(pattern: str, regex: str) -> TopicFilter:
    return Blacklist(regex) if pattern == BLACK_LIST else Whitelist(regex)
