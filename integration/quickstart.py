"""The original's quick start as an acceptance script: `python -m integration.quickstart`.

Runs steps 1 to 5 through bin/ as a newcomer types them, echoes every command, compares what the
tutorial promises, and leaves nothing running or lying about. Uses the shipped configuration as it
is; when its ports or directories are taken, or this machine's name does not resolve, copies of it
on free ports with private directories. `--home DIR` runs another installation with the same layout.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from integration.harness import free_port
from kafka08 import builds

TIMEOUT_S = 30
LOOPBACK = "127.0.0.1"
DIRECTORIES = {"dataDir": "/tmp/zookeeper", "log.dirs": "/tmp/kafka-logs"}
LINES = ["This is a message", "This is another message"]
CODE_OF_INT = 130


class Failed(Exception):
    """A step did not do what the tutorial says."""


class Setup(NamedTuple):
    """Paths as typed on the command line and the ports behind them."""

    zookeeper_config: str
    server_config: str
    zookeeper_port: int
    server_port: int
    host: str = "localhost"
    console_config: str = "config/kafka-console.properties"
    console_port: int = 9000


def foreign_modules(directory: Path) -> Path:
    """A directory as an application for an old Python has it in PYTHONPATH: modules of the names
    that servers import, which this Python cannot run. The scripts must not see them."""
    made = directory / "python2"
    made.mkdir()
    for name in ("typing", "snappy", "lz4", "gevent", "kazoo"):
        (made / f"{name}.py").write_text("print 'for Python 2'\n")
    return made


class Shell:
    """Runs commands in `home`, shows them, and ends everything it started."""

    def __init__(self, home: Path, logs: Path) -> None:
        self._home = home
        self._logs = logs
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        self._env = {**os.environ, "PATH": path, "LOG_DIR": str(logs)}
        self._env["PYTHONPATH"] = str(foreign_modules(logs))
        self._background: list[tuple[subprocess.Popen[bytes], Path]] = []

    def background(self, *command: str) -> tuple[subprocess.Popen[bytes], Path]:
        """Start and go on; the output goes to the returned file."""
        print(f"$ {shlex.join(command)} &", flush=True)
        output = self._logs / f"{len(self._background)}-{Path(command[0]).name}.out"
        with output.open("wb") as file:
            child = subprocess.Popen(
                command,
                cwd=self._home,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._background.append((child, output))
        return child, output

    def run(self, *command: str, stdin: str = "") -> list[str]:
        """Output lines of a command that must succeed."""
        shown = "".join(f"echo {shlex.quote(line)}; " for line in stdin.splitlines())
        typed = shlex.join(command)
        print(f"$ ({shown[:-2]}) | {typed}" if stdin else f"$ {typed}", flush=True)
        done = subprocess.run(
            command,
            cwd=self._home,
            env=self._env,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S * 2,
            check=False,
        )
        print(done.stdout, end="")
        if done.returncode:
            raise Failed(f"{typed} exited with {done.returncode}: {done.stderr}")
        return done.stdout.splitlines()

    def wait_for(self, child: subprocess.Popen[bytes], output: Path, *texts: str) -> None:
        """Poll the output of a background command until it contains every text."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            text = output.read_text(errors="replace")
            missing = [wanted for wanted in texts if wanted not in text]
            if not missing:
                break
            if child.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"never printed {missing[0]!r}; it printed:\n{text[-3000:]}")
            time.sleep(0.1)
        for line in text.splitlines():
            if any(wanted in line for wanted in texts):
                print(line)

    def end(self) -> None:
        """Stop what still runs, last started first."""
        for child, _ in reversed(self._background):
            if child.poll() is None:
                child.terminate()
                try:
                    child.wait(TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()


def taken() -> str:
    """Why the shipped configuration cannot be used as it is; empty when it can."""
    for name in (socket.gethostname(), "localhost"):
        try:
            socket.getaddrinfo(name, None)
        except (OSError, UnicodeError):
            return f"the host name {name} does not resolve"
    for directory in DIRECTORIES.values():
        if Path(directory).exists():
            return f"{directory} exists"
    for port in (2181, 9092, 9000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                return f"port {port} is taken"
    return ""


def private_copy(home: Path, directory: Path) -> Setup:
    """The shipped files with free ports, directories of their own, and no host to look up."""
    zookeeper_port, server_port, console_port = free_port(), free_port(), free_port()
    zookeeper = directory / "zookeeper.properties"
    server = directory / "server.properties"
    console = directory / "kafka-console.properties"
    _rewrite(
        home / "config" / "zookeeper.properties",
        zookeeper,
        {"dataDir": directory / "zookeeper", "clientPort": zookeeper_port},
    )
    _rewrite(
        home / "config" / "server.properties",
        server,
        {
            "port": server_port,
            "advertised.host.name": LOOPBACK,
            "log.dirs": directory / "kafka-logs",
            "zookeeper.connect": f"{LOOPBACK}:{zookeeper_port}",
        },
    )
    _rewrite(
        home / "config" / "kafka-console.properties",
        console,
        {
            "http.port": console_port,
            "zookeeper.connect": f"{LOOPBACK}:{zookeeper_port}",
        },
    )
    return Setup(
        str(zookeeper),
        str(server),
        zookeeper_port,
        server_port,
        LOOPBACK,
        str(console),
        console_port,
    )


def _rewrite(source: Path, target: Path, values: Mapping[str, object]) -> None:
    lines = source.read_text().splitlines()
    kept = [line for line in lines if line.partition("=")[0].strip() not in values]
    target.write_text("\n".join([*kept, *(f"{k}={v}" for k, v in values.items()), ""]))


def heed_interrupts() -> None:
    """Children take Ctrl-C even where our parent ignores it, as nohup and scripts' ``&`` do."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def expect(found: list[str], wanted: list[str]) -> None:
    if found != wanted:
        raise Failed(f"expected {wanted}, got {found}")


def steps(shell: Shell, setup: Setup) -> None:
    """Steps 1 to 5 of the quick start; Failed at the first surprise."""
    zookeeper = f"{setup.host}:{setup.zookeeper_port}"
    brokers = f"{setup.host}:{setup.server_port}"

    started = shell.background("bin/zookeeper-server-start.sh", setup.zookeeper_config)
    config_class = "org.apache.zookeeper.server.quorum.QuorumPeerConfig"
    shell.wait_for(
        *started, f"INFO Reading configuration from: {setup.zookeeper_config} ({config_class})"
    )
    _await_zookeeper(setup)

    started = shell.background("bin/kafka-server-start.sh", setup.server_config)
    shell.wait_for(
        *started,
        "INFO Verifying properties (kafka.utils.VerifiableProperties)",
        "INFO Property socket.send.buffer.bytes is overridden to 102400 (",
        "started (kafka.server.KafkaServer)",
    )

    topics = ["bin/kafka-topics.sh", "--zookeeper", zookeeper]
    create = [topics[0], "--create", *topics[1:], "--replication-factor", "1"]
    expect(shell.run(*create, "--partitions", "1", "--topic", "test"), ['Created topic "test".'])
    expect(shell.run(topics[0], "--list", *topics[1:]), ["test"])

    produce = ["bin/kafka-console-producer.sh", "--broker-list", brokers, "--topic", "test"]
    shell.run(*produce, stdin="".join(line + "\n" for line in LINES))

    consume = ["bin/kafka-console-consumer.sh", "--zookeeper", zookeeper, "--topic", "test"]
    consumer, output = shell.background(*consume, "--from-beginning")
    shell.wait_for(consumer, output, *LINES)
    consumer.send_signal(signal.SIGINT)
    code = consumer.wait(TIMEOUT_S)
    code = 128 - code if code < 0 else code
    if code != CODE_OF_INT:
        raise Failed(f"the interrupted console consumer exited with {code}, not {CODE_OF_INT}")
    expect([line for line in output.read_text().splitlines() if line in LINES], LINES)
    show_console(shell, setup)


def show_console(shell: Shell, setup: Setup) -> None:
    """The cluster in a browser: its address, and the messages as the page has them."""
    started = shell.background("bin/kafka-console-start.sh", setup.console_config)
    shell.wait_for(*started, "INFO The console of")
    address = f"http://{LOOPBACK}:{setup.console_port}/topics/test/messages"
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        page = _page(address)
        if all(f">{line}</code>" in page for line in LINES):
            print(f"# While the console runs, a browser shows these messages at {address}")
            return
        if time.monotonic() > deadline:
            raise Failed(f"{address} never showed {LINES}; it showed:\n{page[-3000:]}")
        time.sleep(0.2)


def _page(address: str) -> str:
    request = urllib.request.Request(address, headers={"Accept": "text/html"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return str(answer.read().decode())
    except OSError as error:
        return str(error)


def _await_zookeeper(setup: Setup) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            socket.create_connection((setup.host, setup.zookeeper_port), 1).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise Failed(f"nothing listens on port {setup.zookeeper_port}") from error
            time.sleep(0.1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.quickstart", description=__doc__)
    here = Path(__file__).resolve().parent.parent
    parser.add_argument("--home", type=Path, default=here, help="the installation to try")
    home = parser.parse_args().home.resolve()
    heed_interrupts()
    state = "compiled" if builds.is_ready() else "from its Python sources; make setup compiles it"
    print(f"# The broker runs {state}.")
    with tempfile.TemporaryDirectory(prefix="kafka08-quickstart-") as name:
        directory = Path(name)
        shell = Shell(home, directory)
        reason = taken()
        if reason:
            print(f"# {reason}: copies of the configuration, free ports, private directories")
            setup = private_copy(home, directory)
        else:
            setup = Setup("config/zookeeper.properties", "config/server.properties", 2181, 9092)
        try:
            steps(shell, setup)
        except (Failed, subprocess.TimeoutExpired) as failed:
            print(f"FAILED: {failed}")
            return 1
        finally:
            shell.end()
            if not reason:
                for made in DIRECTORIES.values():
                    shutil.rmtree(made, ignore_errors=True)
    print("The quick start works.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
