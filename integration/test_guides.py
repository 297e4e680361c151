"""The Python examples of the guides, run as they stand.

All ```python blocks of a guide make one program, in order. Where they say localhost:9092 and
localhost:2181 they get a broker and a ZooKeeper of their own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.harness import HOME, Broker, Process, ZooKeeper

GUIDES = ("connect.md", "consumer.md", "producer.md")
TIMEOUT_S = 120
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def program(guide: Path) -> str:
    """The blocks with blank lines between, so that tracebacks show the guide's own lines."""
    text = guide.read_text()
    lines: list[str] = []
    for block in _BLOCK.finditer(text):
        start = text.count("\n", 0, block.start(1))
        lines += [""] * (start - len(lines)) + block[1].splitlines()
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def servers(
    zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Broker]]:
    """Fresh brokers, each below a chroot of its own."""
    started: list[Process] = []

    def start() -> Broker:
        name = f"guide-{uuid.uuid4().hex[:8]}"
        props = {"offsets.topic.num.partitions": 3, "delete.topic.enable": "true"}
        chroot = f"{zookeeper.connect}/{name}"
        broker = Broker("ours", tmp_path_factory.mktemp(name), chroot, props=props)
        started.append(broker)
        return broker.start()

    yield start
    for process in started:
        process.kill()


@pytest.mark.parametrize("name", GUIDES)
def test_examples_run(name: str, servers: Callable[[], Broker], tmp_path: Path) -> None:
    guide = HOME / "docs" / name
    if not guide.exists():
        pytest.skip(f"there is no docs/{name}")
    broker = servers()
    code = program(guide).replace("localhost:9092", broker.address)
    code = code.replace('"localhost", 9092', f'"127.0.0.1", {broker.port}')
    code = code.replace("localhost:2181", broker.zookeeper)
    assert code.strip(), f"docs/{name} has no example"
    script = tmp_path / f"{name}.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(HOME), "PATH": "/usr/bin:/bin"},
        timeout=TIMEOUT_S,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
