"""MirrorMaker 2 as a process between two clusters, which it calls here and there."""

from __future__ import annotations

from pathlib import Path

from integration.harness import Process
from integration.programs import connect

EVERY_S = (
    "emit.checkpoints.interval.seconds",
    "sync.group.offsets.interval.seconds",
    "refresh.topics.interval.seconds",
    "refresh.groups.interval.seconds",
    "sync.topic.configs.interval.seconds",
)
INTERNAL = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic")
STORED = ("offset.storage", "status.storage", "config.storage")


class MirrorMaker(Process):
    """Mirrors the topics of each cluster that match a pattern, with the offsets of all groups."""

    def __init__(
        self, here: str, there: str, directory: Path, from_here: str, from_there: str
    ) -> None:
        values: dict[str, object] = {
            "clusters": "here,there",
            "here.bootstrap.servers": here,
            "there.bootstrap.servers": there,
            "here->there.enabled": "true",
            "here->there.topics": from_here,
            "there->here.enabled": "true",
            "there->here.topics": from_there,
            "sync.group.offsets.enabled": "true",
            "offset.lag.max": 0,
            "replication.factor": 1,
            "offset.flush.interval.ms": 300,
            **dict.fromkeys(EVERY_S, 1),
            **{f"{each}.replication.factor": 1 for each in (*INTERNAL, *STORED)},
        }
        main = "org.apache.kafka.connect.mirror.MirrorMaker"
        super().__init__("MirrorMaker 2", connect.command(directory, main, values), directory)
