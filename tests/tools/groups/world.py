"""A ZooKeeper and a broker with a topic, and the tools that look at groups around them."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.common import Broker, TopicPartition
from kafka08.consumer.assignors import thread_ids
from kafka08.groups import admin as group_admin
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime
from tests.fakes.zookeeper import FakeZooKeeper, Session
from tools import admin_command
from tools.groups import consumer_groups, consumer_offset_checker
from tools.groups import verify_consumer_rebalance as verifier
from zk import znodes
from zk.znodes import ConsumerRegistration

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class ClusterWithGroups:
    """A broker with topic t of two partitions, 10 and 20 messages long."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.runtime = FakeRuntime()
        self.ensemble = FakeZooKeeper()
        self.cluster = FakeCluster([Broker(0, "b0", 9090)])
        self.put("/brokers/ids/0", znodes.encode_broker(znodes.BrokerRegistration("b0", 9090)))
        self.put("/brokers/topics/t", znodes.encode_topic({0: [0], 1: [0]}))
        for partition, count in enumerate((10, 20)):
            path = znodes.partition_state_path("t", partition)
            state = znodes.PartitionStateNode(0, 0, 1, (0,))
            self.put(path, znodes.encode_partition_state(state))
            self.cluster.create("t", 2) if not partition else None
            self.cluster.append("t", partition, *[b"x"] * count)
        monkeypatch.setattr(admin_command, "connect", lambda urls, security: Session(self.ensemble))
        real = group_admin.GroupAdmin

        def service(*args: Any, **options: Any) -> Any:
            options["runtime"] = self.runtime
            return real(*args, channel=self.cluster.channel, **options)

        monkeypatch.setattr(consumer_groups, "GroupAdmin", service)
        checker = consumer_offset_checker.OffsetChecker

        def make_checker(*args: Any, **options: Any) -> Any:
            options["runtime"] = self.runtime
            return checker(*args, channel=self.cluster.channel, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(consumer_offset_checker, "OffsetChecker", make_checker)

    def put(self, path: str, data: bytes = b"") -> None:
        self.ensemble.put(path, data)

    def store(self, group: str = "g", **offsets: int) -> None:
        for name, offset in offsets.items():
            self.put(f"/consumers/{group}/offsets/t/{name[1:]}", str(offset).encode())

    def member(self, name: str, *owned: TopicPartition, streams: int = 1) -> None:
        consumer = f"g_{name}"
        node = znodes.encode_consumer(ConsumerRegistration({"t": streams}))
        self.put(f"/consumers/g/ids/{consumer}", node)
        for tp, thread in zip(owned, thread_ids(consumer, streams) * 9, strict=False):
            self.put(znodes.consumer_owner_path("g", *tp), thread.encode())

    def offset(self, partition: int) -> str:
        return self.ensemble.text(f"/consumers/g/offsets/t/{partition}")

    def groups(self, *words: str) -> list[str]:
        assert consumer_groups.main(["--zookeeper", "z", *words]) == 0
        printed = self.capsys.readouterr()
        self.stderr = printed.err
        return printed.out.splitlines()

    def check(self, *words: str, group: str = "g") -> list[str]:
        assert consumer_offset_checker.main(["--zookeeper", "z", "--group", group, *words]) == 0
        return self.capsys.readouterr().out.splitlines()

    def verify(self) -> str:
        assert verifier.main(["--zookeeper.connect", "z", "--group", "g"]) == 0
        return self.capsys.readouterr().out
