"""The image of docs/deploy: built, started as ZooKeeper and as a broker, used, stopped, restarted.

Needs a Docker daemon and a Debian image: KAFKA08_TEST_BASE, by default debian:bookworm-slim. The
test fetches neither. The containers share the network of this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.harness import free_port
from integration.wire import wait_until

ROOT = Path(__file__).resolve().parent.parent
BASE = os.environ.get("KAFKA08_TEST_BASE", "debian:bookworm-slim")
BUILT_FROM = ("kafka08", "zk", "tools", "bin", "config", "constraints", "docs/deploy")
FILES = ("pyproject.toml", "setup.cfg", "README.md", "LICENSE")
NO_SOURCES = shutil.ignore_patterns("__pycache__", "_compiled", "*.so", "*.c")
BUILD_TIMEOUT_S = 1800
START_TIMEOUT_S = 120


def docker(*words: str, timeout: float = 120, stdin: str | None = None) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        ["docker", *words],
        input=stdin,
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def missing() -> str:
    """Why no image can be built here; empty when it can."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    for words, reason in (
        (["info"], "no Docker daemon answers"),
        (["image", "inspect", BASE], f"there is no image {BASE}; KAFKA08_TEST_BASE names another"),
    ):
        if subprocess.run(["docker", *words], capture_output=True, check=False).returncode:
            return reason
    return ""


if missing():
    pytest.skip(missing(), allow_module_level=True)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Without machine code: only its build would take minutes."""
    place = tmp_path_factory.mktemp("context")
    for name in BUILT_FROM:
        shutil.copytree(ROOT / name, place / name, symlinks=True, ignore=NO_SOURCES)
    for name in FILES:
        shutil.copy(ROOT / name, place)
    tag = f"kafka08-test-{uuid.uuid4().hex[:8]}"
    words = ["build", "--network", "host", "--build-arg", f"BASE={BASE}", "--tag", tag]
    words += ["--build-arg", "KAFKA08_INTERPRETED=1", "--build-arg", "CC=false"]
    docker(*words, "-f", str(place / "docs/deploy/Dockerfile"), str(place), timeout=BUILD_TIMEOUT_S)
    yield tag
    docker("image", "rm", "--force", tag)


class Container:
    """One that goes with the test, its volume too."""

    def __init__(self, image: str, role: str, **settings: object) -> None:
        words = [word for name, value in settings.items() for word in ("--env", f"{name}={value}")]
        self.id = docker("run", "--detach", "--network", "host", *words, image, role).strip()

    def inspect(self, what: str) -> str:
        return docker("inspect", "--format", f"{{{{{what}}}}}", self.id).strip()

    def run(self, *words: str, stdin: str | None = None) -> str:
        return docker("exec", "--interactive", self.id, *words, stdin=stdin)

    @property
    def log(self) -> str:
        return docker("logs", self.id)

    def await_health(self) -> None:
        try:
            wait_until("health", START_TIMEOUT_S, self._is_healthy)
        except TimeoutError as error:
            pytest.fail(f"{error}: {self.inspect('json .State.Health')}\n{self.log[-3000:]}")

    def _is_healthy(self) -> bool:
        return self.inspect(".State.Health.Status") == "healthy"

    def remove(self) -> None:
        docker("rm", "--force", "--volumes", self.id)


@pytest.fixture(scope="module")
def zookeeper(image: str) -> Iterator[int]:
    """The port of one in a container, which is stopped by its signal at the end."""
    port = free_port()
    settings = {"ZOOKEEPER_CLIENT_PORT": port, "ZOOKEEPER_CLIENT_PORT_ADDRESS": "127.0.0.1"}
    container = Container(image, "zookeeper", **settings)
    try:
        container.await_health()
        yield port
        docker("stop", "--time", "30", container.id)
        assert container.inspect(".State.ExitCode") == "143"
    finally:
        container.remove()


@pytest.fixture
def broker(image: str, zookeeper: int) -> Iterator[Container]:
    container = Container(
        image,
        "broker",
        KAFKA_BROKER_ID=3,
        KAFKA_PORT=free_port(),
        KAFKA_HOST_NAME="127.0.0.1",
        KAFKA_HTTP_PORT=free_port(),
        KAFKA_ZOOKEEPER_CONNECT=f"127.0.0.1:{zookeeper}/container",
        KAFKA_LOG_RETENTION_HOURS=7,
    )
    container.await_health()
    yield container
    container.remove()


def test_a_broker_keeps_its_data_over_a_stop(broker: Container, zookeeper: int) -> None:
    assert broker.run("id", "-u") == "9092\n"
    assert "Property log.retention.hours is overridden to 7" in broker.log
    topic = ["--zookeeper", f"127.0.0.1:{zookeeper}/container", "--topic", "t"]
    broker.run("kafka-topics", "--create", *topic, "--partitions", "1", "--replication-factor", "1")
    ports = broker.run("cat", "/tmp/kafka08/server.properties")
    port = [line for line in ports.splitlines() if line.startswith("port=")][-1][5:]
    produce = ["kafka-console-producer", "--broker-list", f"127.0.0.1:{port}", "--topic", "t"]
    broker.run(*produce, stdin="kept\n")
    docker("stop", "--time", "60", broker.id)
    # The signal came to the broker, through no shell; after a minute it would have been 137.
    assert broker.inspect(".State.ExitCode") in ("0", "143")
    assert "shut down completed (kafka.server.KafkaServer)" in broker.log
    docker("start", broker.id)
    broker.await_health()
    read = ["kafka-console-consumer", *topic, "--from-beginning", "--max-messages", "1"]
    assert broker.run(*read) == "kept\n"


def test_a_mistake_is_told_in_one_line(image: str) -> None:
    words = ["docker", "run", "--rm", "--env", "KAFKA_BROKER_ID=ordinal", "--hostname", "box"]
    done = subprocess.run(
        [*words, image, "broker"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == ("KAFKA_BROKER_ID is ordinal, but host box has no number at its end\n")
