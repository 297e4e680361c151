"""The examples of the guides, run as they stand.

All ```python blocks of a guide make one program, in order, and all ```sh blocks one script. Where
they say localhost:9092 and localhost:2181 they get a broker and a ZooKeeper of their own.
```console blocks are only shown. The guides for readers start their own servers, and say what their
commands print (see integration/guides.py).
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

from integration import guides
from integration.harness import HOME, Broker, Process, ZooKeeper, free_port

GUIDES = ("connect.md", "consumer.md", "producer.md")
# Those of the shell, and how many brokers are there; operator.md starts its own.
SHELL_GUIDES = {"operator.md": 0, "migrating.md": 1}
READERS_GUIDES = ("guide-data.md", "guide-operator.md", "guide-python.md")
# Those of ZooKeeper, of brokers for clients of 0.8, over HTTP and with logins.
PORTS = (2181, 9092, 9093, 9094, 9192, 9193, 9404, 9405)
# Sessions that a busy machine keeps.
PATIENT = {
    "zookeeper.connect=localhost:2181": "zookeeper.connect=localhost:2181\n"
    "zookeeper.session.timeout.ms=30000\nzookeeper.connection.timeout.ms=60000",
    "zookeeper.connection.timeout.ms=6000": "",
    'zookeeper_connect="localhost:2181"': 'zookeeper_connect="localhost:2181", '
    "zookeeper_session_timeout_ms=30000",
    "consumer_timeout_ms=3000": "consumer_timeout_ms=20000",
}
TIMEOUT_S = 120
SHELL_TIMEOUT_S = 200
READERS_TIMEOUT_S = 600
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
    _link_checkout(place)
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
        _copy_settings(place, {"localhost:2181": connect})
    script = script.replace("localhost:2181", connect)
    script = re.sub(r"\b909[2-5]\b", lambda match: ports[match[0]], script)
    path = place / "guide.sh"
    path.write_text(f"set -euxo pipefail\ncd {place}\n{script}")
    code, shell = _run(name, path, SHELL_TIMEOUT_S)
    assert code == 0, shell.log[-5000:]
    if name == "migrating.md":
        assert "copy:0:100" in shell.log


def _run(name: str, script: Path, timeout_s: float) -> tuple[int, Process]:
    """The exit status of a guide's script, and the process, which has ended."""
    shell = Process(name, ["bash", str(script)], script.parent)
    try:
        shell.spawn()
        return shell.exit_code(timeout_s), shell
    except subprocess.TimeoutExpired:
        raise AssertionError(f"docs/{name} hangs:\n{shell.log[-3000:]}") from None
    finally:
        shell.kill()


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS_GUIDES)
def test_readers_guides_run_and_print_what_they_say(name: str, place: Path) -> None:
    """The guide's own servers run on free ports, with data below the directory of the test."""
    ports = {str(port): str(free_port()) for port in PORTS}
    names = {**PATIENT, "/srv": str(place / "srv"), "/tmp": str(place / "tmp")}
    names = {key: _renamed(value, ports) for key, value in names.items()}
    _link_checkout(place)
    _copy_settings(place, names | ports)
    outputs = place / "outputs"
    for directory in (outputs, place / "srv" / "kafka", place / "tmp"):
        directory.mkdir(parents=True)
    steps = [
        _placed(step, names | ports) for step in guides.steps((HOME / "docs" / name).read_text())
    ]
    path = place / "guide.sh"
    path.write_text(f"cd {place}\n{guides.script(steps, outputs)}")
    code, shell = _run(name, path, READERS_TIMEOUT_S)
    back = {value: key for key, value in (names | ports).items() if value}
    wrong = []
    for number, step in enumerate(steps):
        if step.output is not None and (outputs / str(number)).exists():
            printed = _renamed((outputs / str(number)).read_text(), back)
            if not guides.matches(step.output, printed):
                wrong.append(f"docs/{name}:{step.line} printed\n{printed}")
    assert wrong == [], "\n".join(wrong)
    assert code == 0, shell.log[-5000:]
    assert sum(step.output is not None for step in steps) > 3


def _placed(step: guides.Step, names: dict[str, str]) -> guides.Step:
    file = None if step.file is None else _renamed(step.file, names)
    return step._replace(text=_renamed(step.text, names), file=file)


def _renamed(text: str, names: dict[str, str]) -> str:
    """``text`` with whole words replaced, all at once: a new name may be an old one too."""
    words = "|".join(map(re.escape, names))
    return re.sub(rf"(?<![\w.])(?:{words})(?!\w)", lambda found: names[found[0]], text)


def _link_checkout(place: Path) -> None:
    for part in ("bin", "config", "kafka08", "tools", "zk", ".venv"):
        (place / part).symlink_to(HOME / part)


def _copy_settings(place: Path, names: dict[str, str]) -> None:
    (place / "config").unlink()
    (place / "config").mkdir()
    for file in (HOME / "config").iterdir():
        (place / "config" / file.name).write_text(_renamed(file.read_text(), names))


def _free_ports(count: int) -> int:
    """The first of so many in a row."""
    while True:
        first = free_port()
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for port in range(first, first + count):
                probe = stack.enter_context(socket.socket())
                probe.bind(("127.0.0.1", port))
            return first
