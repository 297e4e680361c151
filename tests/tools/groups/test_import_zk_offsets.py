"""ImportZkOffsets against a ZooKeeper in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka08.errors import KafkaError
from tests.tools.groups.zk_offsets import export
from tools.groups import export_zk_offsets, import_zk_offsets
from tools.options import UsageError


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
