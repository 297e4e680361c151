"""Logs the failures of the topics or partitions of one request in one line."""

from __future__ import annotations

import logging

from kafka08.common import TopicPartition
from kafka08.errors import KafkaError, code_of

logger = logging.getLogger("kafka.server.KafkaApis")

_SHOWN = 3


class RequestFailures:
    """``add`` returns the wire code. ``tell`` logs a line, unless all failures are disk errors,
    which are logged elsewhere, once."""

    # Each request creates one, which mostly stays empty, so the dict is created later.
    _count: int = 0
    _is_news: bool = False
    _shown: tuple[str, ...] = ()
    _unexpected: Exception | None = None

    def add(self, key: TopicPartition | str, error: Exception) -> int:
        self._count += 1
        self._is_news = self._is_news or not isinstance(error.__cause__, OSError)
        if len(self._shown) < _SHOWN:
            self._shown += (f"{key} failed due to {error}",)
        if self._unexpected is None and not isinstance(error, KafkaError):
            self._unexpected = error
        return code_of(error)

    def __bool__(self) -> bool:
        return self._count > 0

    def __str__(self) -> str:
        more = self._count - len(self._shown)
        return "; ".join(self._shown) + (f"; and {more} more" if more else "")

    def tell(self, request: str) -> None:
        """A warning, or an error with the first traceback if one was not a KafkaError."""
        if not self._is_news:
            return
        level = logging.WARNING if self._unexpected is None else logging.ERROR
        logger.log(level, "%s: %s", request, self, exc_info=self._unexpected)
