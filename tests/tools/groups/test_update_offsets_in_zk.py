"""UpdateOffsetsInZK against a ZooKeeper and a cluster in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.common import EARLIEST_TIME, LATEST_TIME, Broker
from kafka08.errors import KafkaError
from tests.fakes.cluster import FakeCluster
from tests.tools.zk_support import put_topic
from tools.groups import update_offsets_in_zk
from zk import registry, znodes


class TestUpdate:
    @pytest.fixture
    def cluster(self, zk: Any, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
        cluster = FakeCluster()
        cluster.create("t", 2)
        cluster.append("t", 0, b"a", b"b")
        put_topic(zk, "t", [0], [0])
        for partition in (0, 1):
            zk.create(
                znodes.partition_state_path("t", partition),
                znodes.encode_partition_state(znodes.PartitionStateNode(0, 0, 1, (0,))),
                makepath=True,
            )
        monkeypatch.setattr(
            registry, "read_broker", lambda client, id, protocol: Broker(id, "b0", 9090)
        )
        return cluster

    def test_latest_and_earliest(self, zk: Any, cluster: FakeCluster, capsys: Any) -> None:
        for time, offset in ((LATEST_TIME, 2), (EARLIEST_TIME, 0)):
            assert update_offsets_in_zk.update(zk, "g", "t", time, cluster.channel) == 2
            assert capsys.readouterr().out.splitlines() == [
                f"updating partition 0 with new offset: {offset}",
                "updating partition 1 with new offset: 0",
            ]
            assert zk.get("/consumers/g/offsets/t/0")[0] == str(offset).encode()

    def test_what_cannot_be_told(
        self, zk: Any, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(registry, "read_broker", lambda client, id, protocol: None)
        with pytest.raises(KafkaError, match="broker id 0 does not exist"):
            update_offsets_in_zk.update(zk, "g", "t", -1, cluster.channel)
        zk.delete(znodes.partition_state_path("t", 0))
        with pytest.raises(KafkaError, match="Broker None is unavailable"):
            update_offsets_in_zk.update(zk, "g", "t", -1, cluster.channel)
        assert update_offsets_in_zk.update(zk, "g", "nope", -1, cluster.channel) == 0

    @pytest.mark.parametrize("argv", [[], ["latest", "x"], ["now", "x", "t"]])
    def test_usage(self, argv: list[str], capsys: Any) -> None:
        assert update_offsets_in_zk.main(argv) == 1
        assert capsys.readouterr().out == (
            "USAGE: kafka.tools.UpdateOffsetsInZK$ [earliest | latest] consumer.properties topic\n"
        )

    def test_the_group_comes_from_the_file(
        self, zk: Any, cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capsys: Any,
    ) -> None:  # fmt: skip
        asked = []
        monkeypatch.setattr(
            update_offsets_in_zk,
            "update",
            lambda client, *words, security: asked.append(words) or 3,
        )
        file = tmp_path / "consumer.properties"
        file.write_text("group.id=g\nzookeeper.connect=z:1\n")
        assert update_offsets_in_zk.main(["latest", str(file), "t"]) == 0
        assert asked == [("g", "t", -1)]
        assert capsys.readouterr().out == "updated the offset for 3 partitions\n"
