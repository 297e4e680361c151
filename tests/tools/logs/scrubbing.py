"""A log of sealed segments, damage to them, and a leader that still has everything."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

from kafka08.common import Broker, TopicPartition
from kafka08.log.manager import LogManager
from kafka08.log.segments import integrity
from kafka08.message.sets import encode_set
from kafka08.message.wrappers import absolute_slice
from kafka08.protocol import schemas
from kafka08.settings.broker import BrokerConfig
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeClock
from tests.log.support import values
from tools.logs.log_scrub import main

KEY = TopicPartition("t", 0)
REPAIR = ["--repair", "--bootstrap-server", "b1:9091", "--broker-id", "0"]


def make_log(path: Path, *, sealed: bool = True) -> None:
    """Plain and compressed sets by turns in a dozen segments, closed cleanly."""
    config = BrokerConfig.from_properties(
        {
            "broker.id": "0",
            "zookeeper.connect": "none",
            "log.dirs": str(path),
            "log.segment.bytes": "1500",
            "log.index.interval.bytes": "300",
            "log.cleaner.enable": "false",
        }
    )
    manager = LogManager(config, clock=FakeClock(), topic_configs={})
    manager.load()
    log = manager.create_log(KEY, manager.default_config)
    noise = random.Random(3)
    for number in range(30):
        texts = [noise.randbytes(20).hex() for _ in range(8)]
        log.append(memoryview(bytearray(encode_set(values(*texts), number % 2))))
    manager.close()
    for segment in sealed_segments(path) if sealed else ():
        made = integrity.write(str(segment), integrity.summed(str(segment)))
        os.replace(made, integrity.seal_path(str(segment)))


def sealed_segments(path: Path) -> list[Path]:
    return sorted((path / "t-0").glob("*.log"))[:-1]


def flip(path: Path, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(bit // 8)
        (byte,) = file.read(1)
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def snapshot(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def run(capsys: Any, data: Path, *words: str) -> tuple[int, list[dict[str, Any]]]:
    status = main(["--log-dirs", str(data), "--json", *words])
    return status, json.loads(capsys.readouterr().out)


class Leader(FakeCluster):
    """Broker 1 leads with what was stored; wrappers are rebuilt for consumers."""

    def __init__(self, path: Path) -> None:
        super().__init__([Broker(1, "b1", 9091)])
        self.create("t", 1, leader=1)
        self.asked: list[tuple[int, int]] = []
        for log in sorted((path / "t-0").glob("*.log")):
            self.store(KEY, log.read_bytes())

    def _FetchRequest(self, port: int, request: Any) -> Any:
        response = super()._FetchRequest(port, request)
        (topic,) = response.topics
        (answer,) = topic.partitions
        self.asked.append((request.replica_id, request.topics[0].partitions[0].offset))
        if request.replica_id < 0:
            data = absolute_slice(bytes(answer.message_set), max_bytes=1 << 30)
            answer = answer._replace(message_set=memoryview(data))
        return schemas.FetchResponse([schemas.FetchTopicResponse("t", [answer])])
