"""The form of a room of the server: its handlers, metrics, timers, and the parts that run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafka08.metrics.registry import Registry
from kafka08.runtime import Scheduler
from kafka08.server.requests.dispatch import Handler


class Part(NamedTuple):
    """Something that runs from ``start`` to ``stop``. ``name`` is for the log, if it does not
    stop."""

    name: str
    start: Callable[[], object] | None = None
    stop: Callable[[], object] | None = None


class Room:
    """A folder of the server. Its ``__init__`` builds what belongs together, from the settings and
    from the rooms that it needs. ``broker`` starts the parts, as their order goes across rooms."""

    def handlers(self) -> list[Handler]:
        """Of the APIs that are served here. Which of them a broker serves depends on its settings
        (``rooms``)."""
        return []

    def add_metrics(self, registry: Registry) -> None:
        """Add the metrics whose values are here."""

    def schedule(self, scheduler: Scheduler) -> None:
        """Start the timers."""
