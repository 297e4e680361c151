"""kafka08.console.main: its settings; the process itself is tested in integration/."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.console.main import USAGE, main


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1
    assert USAGE in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("http.port=9000\n", "zookeeper.connect"),
        ("zookeeper.connect=h:1\nhttp.port=x\n", "http.port"),
        ("zookeeper.connect=h:1\nconsole.users.file=/none/users\n", "console.users.file"),
        ("zookeeper.connect=h:1\nclient.security.protocol=TLS\n", "security.protocol"),
        ("zookeeper.connect=h:1\nhttp.tls=true\n", "ssl.keystore.location"),
        ("console.clusters=a,a\n", "the name a 2 times"),
        ("console.clusters=a\n", "cluster.a.zookeeper.connect"),
        ("console.clusters=a\ncluster.a.zookeeper.connect=h:x\n", "Cluster a: Invalid zookeeper"),
        ("console.clusters=a\ncluster.b.zookeeper.connect=h:1\n", "cluster.b.zookeeper.connect"),
    ],
)
def test_a_wrong_setting_ends_the_start_with_its_name(
    text: str, named: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "console.properties"
    path.write_text(text)
    assert main([str(path)]) == 1
    assert named in caplog.text
    assert "console.properties" in caplog.text


def test_a_file_that_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    assert main(["/none/console.properties"]) == 1
    assert "No such file" in caplog.text
