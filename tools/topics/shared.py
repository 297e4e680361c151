"""Shared by both ways of kafka-topics: option values, and how topics are printed.

The two ways, over ZooKeeper and over the wire, are in zookeeper.py and bootstrap.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka08 import admin
from kafka08.config import TOPIC_KEYS, LogConfig
from kafka08.consumer.filters import Whitelist
from tools.options import Arguments
from zk import znodes

MIN_ISR = "min.insync.replicas"
PARTITION_FILTERS = (
    "under-replicated-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
)


class PartitionView(NamedTuple):
    """A partition as it is printed. ``leader``: "none", or -1 or another id."""

    topic: str
    partition: int
    leader: int | str
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    under_replicated: bool
    available: bool


# --- option values


def select(args: Arguments, topics: Iterable[str]) -> list[str]:
    """The topics --topic matches, all without it, sorted."""
    regex = args.value("topic") if args.has("topic") else ".*"
    return Whitelist(regex).select(topics, exclude_internal=args.has("exclude-internal"))


def configs_to_add(args: Arguments) -> dict[str, str]:
    """The --config options, checked."""
    # Java drops empty pieces at the end: "a=" is one piece.
    pairs = [re.split(r"\s*=\s*", text) for text in args.values("config")]
    for pair in pairs:
        while pair and not pair[-1]:
            pair.pop()
    if any(len(pair) != 2 for pair in pairs):
        raise admin.InvalidArgumentError(
            "requirement failed: Invalid topic config: all configs to be added must be in the "
            'format "key=val".'
        )
    config = {key.strip(): value.strip() for key, value in pairs}
    LogConfig.validate(config)
    return config


def configs_to_delete(args: Arguments) -> list[str]:
    """The --delete-config options; their names must be known."""
    names = [name.strip() for name in args.values("delete-config")]
    for name in names:
        if name not in TOPIC_KEYS:
            raise admin.InvalidArgumentError(f'requirement failed: Unknown configuration "{name}".')
    return names


# --- printing


def filters_partitions(args: Arguments) -> bool:
    """Whether describe shows some partitions only, and no header lines."""
    return any(args.has(name) for name in PARTITION_FILTERS)


def needs_min_isr(args: Arguments) -> bool:
    return args.has("under-min-isr-partitions") or args.has("at-min-isr-partitions")


def print_topic(
    args: Arguments,
    topic: str,
    partitions: list[PartitionView],
    config: Mapping[str, str],
    min_isr: int,
) -> None:
    """The lines that describe prints for a topic. ``config``: its own settings."""
    overrides_only = args.has("topics-with-overrides")
    if not filters_partitions(args) and (config or not overrides_only):
        _print_header(topic, partitions, config)
    if not overrides_only:
        for view in partitions:
            if _is_wanted(args, view, min_isr):
                _print_partition(view)


def _is_wanted(args: Arguments, view: PartitionView, min_isr: int) -> bool:
    if args.has("under-replicated-partitions"):
        return view.under_replicated
    if args.has("unavailable-partitions"):
        return not view.available
    if args.has("under-min-isr-partitions"):
        return len(view.isr) < min_isr
    if args.has("at-min-isr-partitions"):
        return len(view.isr) == min_isr
    return True


def _print_header(topic: str, partitions: list[PartitionView], config: Mapping[str, str]) -> None:
    configs = ",".join(f"{key}={config[key]}" for key in znodes.java_properties_order(config))
    # Metadata leaves dead replicas out, so the longest list counts.
    factor = max((len(view.replicas) for view in partitions), default=0)
    print(
        f"Topic:{topic}\tPartitionCount:{len(partitions)}\t"
        f"ReplicationFactor:{factor}\tConfigs:{configs}"
    )


def _print_partition(view: PartitionView) -> None:
    print(
        f"\tTopic: {view.topic}\tPartition: {view.partition}\tLeader: {view.leader}\t"
        f"Replicas: {','.join(map(str, view.replicas))}\tIsr: {','.join(map(str, view.isr))}"
    )
