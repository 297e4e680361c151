"""ExportZkOffsets, ImportZkOffsets and UpdateOffsetsInZK against a ZooKeeper in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.common import EARLIEST_TIME, LATEST_TIME, Broker
from kafka08.errors import KafkaError
from tests.fakes.cluster import FakeCluster
from tests.tools.zk_support import fake_zookeeper, put_topic
from tools.groups import export_zk_offsets, import_zk_offsets, update_offsets_in_zk
from tools.options import UsageError
from zk import registry, znodes
from zk.errors import NoNodeError


@pytest.fixture
def zk(monkeypatch: pytest.MonkeyPatch) -> Any:
    zk = fake_zookeeper(monkeypatch)
    for path, offset in (("g/offsets/t/0", "42"), ("g/offsets/t/1", "7"), ("h/offsets/u/0", "0")):
        zk.create(f"/consumers/{path}", offset.encode(), makepath=True)
    zk.create("/consumers/idle/ids", b"", makepath=True)
    return zk


def export(tmp_path: Path, *words: str) -> list[str]:
    path = tmp_path / "offsets"
    assert export_zk_offsets.main(["--zkconnect", "z:1", "--output-file", str(path), *words]) == 0
    return path.read_text().splitlines()


def test_all_groups_are_exported(zk: Any, tmp_path: Path, capsys: Any) -> None:
    assert sorted(export(tmp_path)) == [
        "/consumers/g/offsets/t/0:42",
        "/consumers/g/offsets/t/1:7",
        "/consumers/h/offsets/u/0:0",
    ]
    assert capsys.readouterr() == ("", "")
    assert zk.closed


def test_named_groups_are_exported(zk: Any, tmp_path: Path) -> None:
    assert export(tmp_path, "--group", "h") == ["/consumers/h/offsets/u/0:0"]
    with pytest.raises(NoNodeError, match="/consumers/idle/offsets"):
        export(tmp_path, "--group", "h", "--group", "idle")
    assert (tmp_path / "offsets").read_text() == "/consumers/h/offsets/u/0:0\n"


def test_what_is_exported_can_be_imported(zk: Any, tmp_path: Path, capsys: Any) -> None:
    lines = export(tmp_path)
    zk.delete_recursive("/consumers")
    file = str(tmp_path / "offsets")
    assert import_zk_offsets.main(["--zkconnect", "z:1", "--input-file", file]) == 0
    assert sorted(export(tmp_path)) == sorted(lines)
    assert capsys.readouterr() == ("", "")


def test_import_ends_at_an_empty_line_and_goes_on_past_failures(zk: Any, capsys: Any) -> None:
    offsets = import_zk_offsets.parse(["/a/0:1\r\n", "/b/0:2\n", "/a/0:3\n", "\n", "/c/0:4\n"])
    assert offsets == {"/a/0": "3", "/b/0": "2"}
    zk.fails["/a/0"] = KafkaError("no way")
    import_zk_offsets.store(zk, {**offsets, "b/1": "5"})
    assert zk.get("/b/0")[0] == b"2"
    err = capsys.readouterr().err
    assert "no way" in err
    assert "IllegalArgumentException: Path must start with /" in err
    with pytest.raises(KafkaError):
        import_zk_offsets.parse(["/a/0:1\n", "/b/0:\n"])


@pytest.mark.parametrize("module", [export_zk_offsets, import_zk_offsets])
def test_usage(module: Any) -> None:
    with pytest.raises(UsageError, match="offsets to"):
        module.main([])
    with pytest.raises(UsageError, match=r"Missing required argument .*"):
        module.main(["--zkconnect", "z:1"])


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
        monkeypatch.setattr(registry, "read_broker", lambda client, id: Broker(id, "b0", 9090))
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
        monkeypatch.setattr(registry, "read_broker", lambda client, id: None)
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
            update_offsets_in_zk, "update", lambda client, *words: asked.append(words) or 3
        )
        file = tmp_path / "consumer.properties"
        file.write_text("group.id=g\nzookeeper.connect=z:1\n")
        assert update_offsets_in_zk.main(["latest", str(file), "t"]) == 0
        assert asked == [("g", "t", -1)]
        assert capsys.readouterr().out == "updated the offset for 3 partitions\n"
