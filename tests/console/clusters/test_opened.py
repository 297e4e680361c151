"""kafka08.console.clusters.opened; connections are tested in integration/."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.console.clusters.opened import OpenCluster
from kafka08.console.clusters.settings import clusters_of
from kafka08.errors import ConfigError
from tests.fakes.runtime import FakeRuntime


@pytest.mark.parametrize(
    ("setting", "value", "text"),
    [
        ("client.security.protocol", "TLS", "security.protocol TLS is not one of"),
        ("client.security.protocol", "SASL_PLAINTEXT", "sasl.jaas.config has no value"),
        ("zookeeper.connect", "h:x", "Invalid zookeeper connect string"),
        ("zookeeper.jaas.config", "x required;", "zookeeper.jaas.config"),
        ("console.audit.file", "/none/audit", "console.audit.file has value /none/audit"),
    ],
)
def test_what_cannot_be_opened_is_named_with_its_cluster(
    setting: str, value: str, text: str
) -> None:
    own = {f"cluster.prod.{key}": each for key, each in ONE.items()}
    names = {"console.clusters": "prod"}
    (named,) = clusters_of({**own, **names, f"cluster.prod.{setting}": value})
    with pytest.raises(ConfigError, match=r"^Cluster prod: .*") as error:
        OpenCluster(named, FakeRuntime())
    assert text in str(error.value)
    (alone,) = clusters_of({**ONE, setting: value})
    with pytest.raises(ConfigError) as error:
        OpenCluster(alone, FakeRuntime())
    assert text in str(error.value)
    assert "Cluster" not in str(error.value)


ONE = {"zookeeper.connect": "127.0.0.1:1"}


def test_a_cluster_that_was_never_connected_can_be_closed(tmp_path: Path) -> None:
    (settings,) = clusters_of({**ONE, "console.history.path": str(tmp_path / "history")})
    cluster = OpenCluster(settings, FakeRuntime())
    assert cluster.site.cluster == "127.0.0.1:1"
    cluster.close()
