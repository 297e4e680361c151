"""The newest clients at a broker with api.versions.enable on, and those of 0.8 beside them."""

from __future__ import annotations

import subprocess
import uuid
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration import modern_client
from integration.clients import Console, HighLevel, Record, Shell, text_records
from integration.harness import Broker, Tools, ZooKeeper

CLIENTS = ("confluent-kafka", "kafka-python")
CODECS_OF_08 = ("none", "gzip", "snappy")
PACKAGES = (*CLIENTS, "python-snappy", "lz4", "zstandard")
TIMEOUT_S = 180


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that has the newest clients."""
    directory = tmp_path_factory.mktemp("clients")
    venv.create(directory, with_pip=True)
    program = str(directory / "bin" / "python")
    done = subprocess.run(
        [program, "-m", "pip", "install", "-q", *PACKAGES], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"the clients cannot be installed: {done.stderr[-300:]}")
    return program


@pytest.fixture(scope="module")
def modern_broker(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    props = {"api.versions.enable": "true", "offsets.topic.num.partitions": 2}
    directory = tmp_path_factory.mktemp("modern")
    broker = Broker("ours", directory, f"{zookeeper.connect}/{unique('modern')}", props=props)
    yield broker.start()
    broker.kill()
    assert " ERROR " not in broker.log


@pytest.fixture(scope="module")
def our_tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools("ours", tmp_path_factory.mktemp("tools"))


def run(python: str, *args: object) -> str:
    words = [python, str(Path(modern_client.__file__)), *map(str, args)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.mark.parametrize("client", CLIENTS)
def test_it_works_and_clients_of_0_8_read_the_same(
    python: str, modern_broker: Broker, our_tools: Tools, client: str
) -> None:
    topic = unique(client)
    run(python, client, "work", modern_broker.address, topic)
    expected = [Record(key, value) for key, value, _, _ in modern_client.written()]
    expected.append(Record(b"key", b"last"))
    HighLevel(our_tools).check(modern_broker, topic, expected)
    Shell(our_tools).check(modern_broker, topic, expected)


@pytest.mark.parametrize("codec", CODECS_OF_08)
def test_they_read_what_the_console_producer_wrote(
    python: str, modern_broker: Broker, our_tools: Tools, codec: str
) -> None:
    topic = unique(codec)
    records = text_records()
    Console(our_tools).write(modern_broker, topic, records, codec)
    values = [(record.value or b"").decode() for record in records]
    for client in CLIENTS:
        args = (client, "read", modern_broker.address, topic, len(records))
        assert run(python, *args).splitlines() == values
