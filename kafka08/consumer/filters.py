"""Which topics a filter subscription covers (kafka.consumer.TopicFilter).

A filter is a Java regex that every member of the group evaluates for every other member; keep
to what ``re`` and Java share, or assignments diverge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kafka08.common import OFFSETS_TOPIC
from kafka08.errors import ConfigError

WHITE_LIST = "white_list"
BLACK_LIST = "black_list"
STATIC = "static"


def normalise(raw: str) -> str:
    """A filter as registered: trimmed, commas are alternatives, no blanks, no outer quotes.

    Raises ConfigError for a regex that does not compile.
    """
    regex = raw.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        re.compile(regex)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(f"{regex} is an invalid regex.") from error
    return regex


class TopicFilter:
    """A normalised regex matched against whole topic names; ``pattern`` is its registered kind."""

    pattern = ""

    def __init__(self, regex: str) -> None:
        self.regex = normalise(regex)
        self._compiled = re.compile(self.regex)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.regex!r})"

    def matches(self, topic: str) -> bool:
        return self._compiled.fullmatch(topic) is not None

    def allows(self, topic: str, *, exclude_internal: bool = True) -> bool:
        """Whether a subscription by this filter takes in ``topic``."""
        if exclude_internal and topic == OFFSETS_TOPIC:
            return False
        return self.matches(topic)

    def select(self, topics: Iterable[str], *, exclude_internal: bool = True) -> list[str]:
        """The covered ones of ``topics``, sorted."""
        return sorted(t for t in topics if self.allows(t, exclude_internal=exclude_internal))


class Whitelist(TopicFilter):
    """Topics that match."""

    pattern = WHITE_LIST


class Blacklist(TopicFilter):
    """Topics that do not match."""

    pattern = BLACK_LIST

    def matches(self, topic: str) -> bool:
        return not super().matches(topic)


def filter_for(pattern: str, regex: str) -> TopicFilter:
    """The filter behind a registration's ``pattern`` and regex."""
    return Blacklist(regex) if pattern == BLACK_LIST else Whitelist(regex)
