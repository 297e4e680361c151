"""kafka-configs beside that of Kafka 3.9.1: each reads what the other wrote in ZooKeeper."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from integration import modern
from integration.harness import Tools, ZooKeeper, zookeeper_text
from kafka08.security.scram import credential_of, decode_credential

CONFIGS = "kafka.admin.ConfigCommand"

Tool = Callable[..., str]


@pytest.fixture(scope="module")
def chroot(zookeeper: ZooKeeper) -> str:
    name = f"configs-{uuid.uuid4().hex[:8]}"
    client = zookeeper.client()
    try:
        client.ensure_path(f"/{name}")
    finally:
        client.stop()
        client.close()
    return f"{zookeeper.connect}/{name}"


@pytest.fixture(scope="module")
def ours(chroot: str, tmp_path_factory: pytest.TempPathFactory) -> Tool:
    tools = Tools("ours", tmp_path_factory.mktemp("configs"))

    def run(*args: str) -> str:
        done = tools.run(CONFIGS, "--zookeeper", chroot, *args)
        assert done.code == 0, done.err
        return done.out

    return run


@pytest.fixture(scope="module")
def theirs(chroot: str) -> Tool:
    if modern.missing():
        pytest.skip(modern.missing())

    def run(*args: str) -> str:
        command = ["java", "-Xmx256M", "-XX:TieredStopAtLevel=1", "-cp", f"{modern.directory()}/*"]
        done = subprocess.run(
            [*command, CONFIGS, "--zookeeper", chroot, *args],
            capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def user(name: str) -> tuple[str, ...]:
    return ("--entity-type", "users", "--entity-name", name)


@pytest.mark.scenario("security-19")
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("name", ["carol", "CN=a b,O=x*~é"])
def test_users(
    ours: Tool, theirs: Tool, chroot: str, tmp_path: Path, mechanism: str, name: str
) -> None:
    for number, tool in enumerate((theirs, ours)):
        added = f"{mechanism}=[iterations=8192,password=pencil{number}]"
        said = tool("--alter", *user(name), "--add-config", added)
        assert f"Completed updating config for entity: user-principal '{name}'." in said
        encoded = name if name == "carol" else "CN%3Da%20b%2CO%3Dx%2A%7E%C3%A9"
        node = zookeeper_text(chroot, f"/config/users/{encoded}")
        assert node is not None
        shown = theirs("--describe", *user(name)).splitlines()[-1]
        prefix = f"Configs for user-principal '{name}' are "
        assert shown.startswith(prefix)
        stored = dict(each.split("=", 1) for each in shown.removeprefix(prefix).split(",SCRAM-"))
        text = next(value for key, value in stored.items() if key.endswith(mechanism[-3:]))
        found = decode_credential(mechanism, text)
        assert found == credential_of(mechanism, f"pencil{number}", found.salt, 8192)
        assert f"{mechanism}=iterations=8192" in ours("--describe", *user(name))
    theirs("--alter", *user(name), "--delete-config", mechanism)
    assert mechanism not in ours("--describe", *user(name))


def test_brokers(ours: Tool, theirs: Tool) -> None:
    words = ("--entity-type", "brokers", "--entity-name", "7")
    line = "Configs for brokers '7' are log.retention.ms=5"
    for tool in (theirs, ours):
        said = tool("--alter", *words, "--add-config", "log.retention.ms=5")
        assert "Completed updating config for entity: brokers '7'." in said
        for reader in (theirs, ours):
            assert line in reader("--describe", *words)
        tool("--alter", *words, "--delete-config", "log.retention.ms")
