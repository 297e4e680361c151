"""Files with secrets that others can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.settings.secret_files import warn_of_passwords


@pytest.mark.scenario("security-54")
@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o604, 0o644])
def test_files_of_passwords(mode: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "server.properties"
    path.touch()
    path.chmod(mode)
    secrets = {
        "ssl.key.password": "hidden-1",
        "listener.name.x.plain.sasl.jaas.config": "hidden-2",
        "zookeeper.jaas.config": "hidden-3",
        "ssl.keystore.password": "",
        "broker.id": "0",
    }
    warn_of_passwords(path, secrets)
    told = (
        f"Others than the owner can read {path}, which has "
        "listener.name.x.plain.sasl.jaas.config, ssl.key.password, zookeeper.jaas.config"
    )
    assert caplog.messages == ([told] if mode & 0o077 else [])
    caplog.clear()
    warn_of_passwords(path, {"broker.id": "0", "ssl.keystore.location": "/key.pem"})
    assert caplog.messages == []
