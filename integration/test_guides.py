"""The examples of the guides, run as they stand.

All ```python blocks of a guide make one program, in order, and all ```sh blocks one script. Where
they say localhost:9092 and localhost:2181 they get a broker and a ZooKeeper of their own.
```console blocks are only shown.
"""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.harness import HOME, Broker, Process, ZooKeeper, free_port

GUIDES = ("connect.md", "consumer.md", "producer.md")
# Those of the shell, and how many brokers are there; operator.md starts its own.
SHELL_GUIDES = {"operator.md": 0, "migrating.md": 1}
TIMEOUT_S = 120
SHELL_TIMEOUT_S = 200
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


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
        props = {
            "offsets.topic.num.partitions": 3,
            "delete.topic.enable": "true",
            "api.versions.enable": "true",
        }
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


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory whose path has no blank, wherever TMPDIR is: the guides do not quote /srv."""
    with tempfile.TemporaryDirectory(prefix="guide-", dir="/tmp") as directory:
        yield Path(directory)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHELL_GUIDES)
def test_commands_run(
    name: str, servers: Callable[[], Broker], zookeeper: ZooKeeper, place: Path
) -> None:
    """Run in a directory that looks like a checkout; all that the script started is killed."""
    for part in ("bin", "config", "kafka08", "tools", "zk", ".venv"):
        (place / part).symlink_to(HOME / part)
    script = "\n".join(_SHELL_BLOCK.findall((HOME / "docs" / name).read_text()))
    script = re.sub(r"/srv\b", str(place / "srv"), script)
    connect = f"{zookeeper.connect}/guide-{uuid.uuid4().hex[:8]}"
    ports = {}
    if SHELL_GUIDES[name]:
        broker = servers()
        connect, ports["9092"] = broker.zookeeper, str(broker.port)
    else:
        first = _free_ports(4)
        ports = {str(9092 + number): str(first + number) for number in range(4)}
        # The brokers write it into their settings from config/server.properties.
        (place / "config").unlink()
        (place / "config").mkdir()
        for file in (HOME / "config").iterdir():
            text = file.read_text().replace("localhost:2181", connect)
            (place / "config" / file.name).write_text(text)
    script = script.replace("localhost:2181", connect)
    script = re.sub(r"\b909[2-5]\b", lambda match: ports[match[0]], script)
    path = place / "guide.sh"
    path.write_text(f"set -euxo pipefail\ncd {place}\n{script}")
    shell = Process(name, ["bash", str(path)], place)
    try:
        shell.spawn()
        code = shell.exit_code(SHELL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"docs/{name} hangs:\n{shell.log[-3000:]}") from None
    finally:
        shell.kill()
    assert code == 0, shell.log[-5000:]
    if name == "migrating.md":
        assert "copy:0:100" in shell.log


def _free_ports(count: int) -> int:
    """The first of so many in a row."""
    while True:
        first = free_port()
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for port in range(first, first + count):
                probe = stack.enter_context(socket.socket())
                probe.bind(("127.0.0.1", port))
            return first
