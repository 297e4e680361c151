"""The settings of brokers for topics without own ones, as far as failures go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kafka08.console.brokers.asked_settings import asked_settings
from kafka08.console.cluster_state import ClusterState
from kafka08.console.failures.what_if import MIN_ISR_KEY, TopicDefaults
from kafka08.controller.elections import UNCLEAN_KEY

Ask = Callable[[int, object], Any]
"""Sends a request to a broker. Raises OSError and KafkaError."""


def read_defaults(state: ClusterState, ask: Ask) -> TopicDefaults:
    """Those of the controller, which elects leaders; the built-in ones if it does not say them, as
    one of 0.8.2.2."""
    broker = state.brokers.get(-1 if state.controller is None else state.controller)
    if broker is None or not broker.serves_later_apis:
        return TopicDefaults()
    told = asked_settings(partial(ask, broker.id), broker.id, UNCLEAN_KEY, MIN_ISR_KEY)
    return _defaults(told, broker.id)


def _defaults(told: Mapping[str, str], broker: int) -> TopicDefaults:
    unclean, min_isr = told.get(UNCLEAN_KEY), told.get(MIN_ISR_KEY, "")
    if unclean not in ("true", "false") or not (min_isr.isascii() and min_isr.isdecimal()):
        return TopicDefaults()
    return TopicDefaults(unclean == "true", int(min_isr), broker)
