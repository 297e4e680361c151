"""ACLs for the nodes of a cluster, on a real ZooKeeper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.zk.conftest import chroot, client  # noqa: F401
from tools.admin import zookeeper_security_migration
from tools.options import UsageError
from zk.access import ALL, OPEN, READ
from zk.client import ZkClient
from zk.errors import NoAuthError

LOGIN = "org.apache.zookeeper.server.auth.DigestLoginModule required username={} password=secret;"
NODES = ("/brokers/topics/t", "/config/users/carol", "/config/topics", "/kafka-acl/Topic/t")


@pytest.fixture
def run(chroot: str, tmp_path: Path) -> Callable[..., int]:  # noqa: F811
    def run(acl: str, *words: str, user: str = "kafka") -> int:
        path = tmp_path / "zk.properties"
        path.write_text("zookeeper.jaas.config=" + LOGIN.format(user) if user else "")
        given = ["--zookeeper.acl", acl, "--zookeeper.connect", chroot]
        return zookeeper_security_migration.main(
            [*given, "--zk-tls-config-file", str(path), *words]
        )

    return run


def acls(client: ZkClient, *paths: str) -> list[list[tuple[int, str, str]]]:  # noqa: F811
    return [client.get_acl(path)[0] for path in paths]


def test_both_ways(run: Callable[..., int], client: ZkClient) -> None:  # noqa: F811
    for path in (*NODES, "/consumers/g/ids", "/mine"):
        client.create(path, makepath=True)
    client.create("/controller", b"{}", ephemeral=True)
    assert run("secure") == 0
    owner = (ALL, "digest", client.get_acl("/brokers")[0][0][2])
    assert owner[2].startswith("kafka:")
    readable = [owner, (READ, "world", "anyone")]
    paths = ("/", "/brokers", "/brokers/topics/t", "/kafka-acl/Topic/t", "/controller")
    assert acls(client, *paths) == [readable] * len(paths)
    # Nobody else may even see who may read them.
    with pytest.raises(NoAuthError):
        client.get("/config/users/carol")
    for path in ("/consumers", "/consumers/g/ids", "/mine"):
        assert client.get_acl(path)[0] == list(OPEN)
    with pytest.raises(NoAuthError):
        client.create("/brokers/topics/u")
    with pytest.raises(NoAuthError):
        client.delete("/controller")
    client.create("/consumers/g/ids/c")
    assert run("secure") == 0

    assert run("unsecure") == 0
    assert acls(client, *paths, *NODES) == [list(OPEN)] * (len(paths) + len(NODES))
    client.create("/brokers/topics/u")


def test_nodes_of_others_are_not_changed(
    run: Callable[..., int],
    client: ZkClient,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    client.create("/brokers/topics", makepath=True)
    assert run("secure") == 0
    before = client.get_acl("/brokers/topics")
    assert run("secure", user="eve") == 1
    assert "Error while migrating: " in capsys.readouterr().err
    assert client.get_acl("/brokers/topics") == before


def test_wrong_uses(
    run: Callable[..., int],
    client: ZkClient,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("secure", "--enable.path.check") == 1
    assert "/admin does not exist, so " in capsys.readouterr().err
    assert client.get_acl("/")[0] == list(OPEN)
    for acl in ("secure", "unsecure"):
        assert run(acl, user="") == 1
        assert "there is no login (zookeeper.jaas.config)" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"--zookeeper.acl is secure or unsecure, not open"):
        run("open")
    with pytest.raises(UsageError, match=r"Missing required argument \"\[zookeeper.acl\]\""):
        zookeeper_security_migration.main(["--zookeeper.connect", "h:1"])
