"""The counts of a controller (kafka.controller.ControllerStats)."""

from __future__ import annotations

from kafka08.metrics.meters import Meter, Timer


class ControllerStats:
    """Over all terms of this broker. ``elections``: changes of the brokers, and how long it took to
    act on them. ``unclean``: leaders from outside the isr."""

    def __init__(self) -> None:
        self.elections = Timer()
        self.unclean = Meter()
