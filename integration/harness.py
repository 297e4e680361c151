"""ZooKeeper, brokers of both kinds and command line tools as child processes.

Everything started here is killed when the interpreter ends, however it ends. Knows nothing of
pytest. `ours` runs through bin/ under KAFKA08_HOME (default: this checkout), `original` through
java. Ports come from KAFKA08_TEST_PORTS (first-last); processes beside one another, such as the
workers of pytest-xdist, take the next ranges of the same size.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from integration import original
from integration.wire import Wire, wait_until

HOME = Path(os.environ.get("KAFKA08_HOME") or Path(__file__).resolve().parent.parent)
# Checkouts whose brokers can run, by the kind that stands for each; benchmarks add another one.
HOMES = {"ours": HOME}


def claim_ports(ports: str) -> tuple[socket.socket, range]:
    """The first range like "20900-20999", or of the same size after it, that no other process
    claimed. A socket on its first port is the claim, which the kernel ends with the process; the
    other ports are returned."""
    first, last = map(int, ports.split("-"))
    size = last - first + 1
    for start in range(first, EPHEMERAL_PORTS - size, size):
        claim = socket.socket()
        try:
            claim.bind(("127.0.0.1", start))
        except OSError:
            claim.close()
        else:
            return claim, range(start + 1, start + size)
    raise RuntimeError(f"other processes use all ports from {first} on")


# Linux gives connections the ports from here on.
EPHEMERAL_PORTS = 32768
_claim, PORTS = claim_ports(os.environ.get("KAFKA08_TEST_PORTS", "20900-20999"))
atexit.register(_claim.close)
KINDS = ("ours", "original")
# Settings of all our brokers that a test does not set itself: KAFKA08_TEST_PROPS="a=b c=d".
OURS = dict(each.split("=", 1) for each in os.environ.get("KAFKA08_TEST_PROPS", "").split())
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60
TOOL_TIMEOUT_S = 90
STARTED = "started (kafka.server.KafkaServer)"

BROKER_LOG4J = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
# Warnings on stderr, so that a tool's standard output is its data alone.
TOOLS_LOG4J = BROKER_LOG4J.replace("INFO", "WARN") + "log4j.appender.stdout.target=System.err\n"


# Ports that were given out, with the time: the receiver of a port may not listen yet.
_given: dict[int, int] = {}


def free_port() -> int:
    """A port of the range on which nothing listens on loopback, the longest unused ones first."""
    ports = list(PORTS)
    random.shuffle(ports)
    ports.sort(key=lambda port: _given.get(port, 0))
    for port in ports:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            _given[port] = max(_given.values(), default=0) + 1
            return port
    raise RuntimeError(f"no free port in {PORTS}")


def properties(values: Mapping[str, object]) -> str:
    return "".join(f"{key}={value}\n" for key, value in values.items())


# Most JVMs of the tests end within a minute, which the optimising compiler would mostly use up.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-Xshare:auto")


def java(class_name: str, *args: str, heap: Iterable[str] = (), log4j: Path) -> list[str]:
    """Command line of a class of the original."""
    command = ["java", *heap, "-XX:+UseG1GC", "-Djava.awt.headless=true", "-Dfile.encoding=UTF-8"]
    command += [f"-Dlog4j.configuration=file:{log4j}", "-cp", original.class_path()]
    return [*command, class_name, *args]


def environment(log_dir: Path) -> dict[str, str]:
    """For the scripts in bin/: this interpreter first, logs where the test wants them."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    zookeeper = " ".join(("-Xmx256M", "-XX:+UseSerialGC", *SHORT_LIVED))
    return {"KAFKA_HEAP_OPTS": zookeeper, **os.environ, "PATH": path, "LOG_DIR": str(log_dir)}


class Process:
    """A child process and its console log. start, stop and kill may repeat."""

    def __init__(self, name: str, command: list[str], directory: Path) -> None:
        self.name = name
        self.command = command
        self.directory = directory
        self.log_path = directory / "console.log"
        self.started_in_s = 0.0
        self._child: subprocess.Popen[bytes] | None = None
        self._mark = 0

    @property
    def pid(self) -> int:
        assert self._child is not None, f"{self.name} was never started"
        return self._child.pid

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def log(self) -> str:
        """Console output since the last start."""
        with self.log_path.open("rb") as file:
            file.seek(self._mark)
            return file.read().decode(errors="replace")

    def spawn(self) -> None:
        assert not self.alive, f"{self.name} is already running"
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as output:
            self._mark = output.tell()
            self._child = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(self.directory),
                start_new_session=True,
            )
        _running.add(self)

    def wait_for(self, text: str, timeout: float = START_TIMEOUT_S) -> None:
        """Until the log since the last start holds `text`; the tail is in the error."""
        deadline = time.monotonic() + timeout
        while text not in self.log:
            if not self.alive or time.monotonic() > deadline:
                state = "running" if self.alive else f"exited with {self.exit_code(1)}"
                tail = "\n".join(self.log.splitlines()[-30:])
                raise AssertionError(f"{self.name} ({state}) never logged {text!r}:\n{tail}")
            time.sleep(0.005)

    def exit_code(self, timeout: float = STOP_TIMEOUT_S) -> int:
        """Wait for the end. 143 after SIGTERM, as a shell would say."""
        assert self._child is not None
        code = self._child.wait(timeout)
        _running.discard(self)
        return 128 - code if code < 0 else code

    def stop(self, sign: int = signal.SIGTERM) -> int:
        """End it politely, or by force when it will not go; its exit code."""
        if self.alive:
            os.kill(self.pid, sign)
            try:
                return self.exit_code()
            except subprocess.TimeoutExpired:
                self.kill()
                tail = "\n".join(self.log.splitlines()[-30:])
                raise AssertionError(f"{self.name} ignored signal {sign}:\n{tail}") from None
        return self.exit_code(1) if self._child else 0

    def kill(self) -> None:
        """Send SIGKILL to the process and to all that it started."""
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait(STOP_TIMEOUT_S)
        _running.discard(self)

    def pause(self) -> None:
        os.killpg(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.killpg(self.pid, signal.SIGCONT)

    def memory(self, field: str = "VmRSS") -> int:
        """Bytes by /proc/PID/status, children included; VmHWM for the peak."""
        total = 0
        for pid in _family(self.pid):
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                    if line.startswith(field + ":"):
                        total += int(line.split()[1]) * 1024
        return total

    def descriptors(self) -> int:
        """Open files and sockets, children's included."""
        total = 0
        for pid in _family(self.pid):
            with contextlib.suppress(OSError):
                total += len(os.listdir(f"/proc/{pid}/fd"))
        return total

    def cpu_seconds(self) -> float:
        """User and system time of the process and its children so far."""
        seconds = 0.0
        for pid in _family(self.pid):
            with contextlib.suppress(OSError):
                seconds += cpu_seconds(pid)
        return seconds


_running: set[Process] = set()


def kill_everything() -> None:
    for process in list(_running):
        process.kill()


atexit.register(kill_everything)


def cpu_seconds(pid: int) -> float:
    """User and system time of one process so far, by the clock that clock_getcpuclockid(3) gives;
    /proc counts in ticks of 10 ms. Raises OSError."""
    return time.clock_gettime(~pid << 3 | 2)


def _family(pid: int) -> list[int]:
    found = [pid]
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += _family(int(child))
    return found


@contextlib.contextmanager
def zookeeper_client(connect: str) -> Iterator[KazooClient]:
    """A started client; ``connect`` may end with a chroot."""
    client = KazooClient(connect, timeout=10)
    client.start(30)
    try:
        yield client
    finally:
        client.stop()
        client.close()


class ZooKeeper(Process):
    """One standalone ZooKeeper with short ticks, so that sessions may be short too. `props` win
    over the settings given here."""

    def __init__(
        self,
        directory: Path,
        port: int | None = None,
        props: Mapping[str, object] | None = None,
    ) -> None:
        self.port = port or free_port()
        directory.mkdir(parents=True, exist_ok=True)
        config = directory / "zookeeper.properties"
        values = {
            "dataDir": directory / "data",
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "maxClientCnxns": 0,
            "tickTime": 500,
            **(props or {}),
        }
        config.write_text(properties(values))
        super().__init__("ZooKeeper", self._command(config), directory)

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _command(self, config: Path) -> list[str]:
        script = HOME / "bin" / "zookeeper-server-start.sh"
        if script.exists():
            return [str(script), str(config)]
        log4j = config.with_name("log4j.properties")
        log4j.write_text(BROKER_LOG4J)
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return java(main, str(config), heap=["-Xmx256M"], log4j=log4j)

    def start(self) -> ZooKeeper:
        self.spawn()
        begin = time.monotonic()
        try:
            wait_until("ZooKeeper", START_TIMEOUT_S, self._answers)
        except TimeoutError as error:
            self.kill()
            raise AssertionError(f"{error}\n{self.log[-3000:]}") from None
        self.started_in_s = time.monotonic() - begin
        return self

    def _answers(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), 2) as connection:
            connection.sendall(b"srvr")
            return bool(connection.recv(100))

    def client(self, chroot: str = "") -> KazooClient:
        """A started client; the caller stops it."""
        client = KazooClient(self.connect + chroot, timeout=10)
        client.start(30)
        return client


# For brokers that nobody kills: an original whose session ends often loses its place for good.
SHARED = {"zookeeper.session.timeout.ms": 10000}


class Broker(Process):
    """A broker of either kind on loopback. `props` win over the defaults given here."""

    def __init__(
        self,
        kind: str,
        directory: Path,
        zookeeper: str,
        *,
        broker_id: int = 0,
        port: int | None = None,
        props: Mapping[str, object] | None = None,
        log_dir: Path | None = None,
        heap: tuple[str, ...] = ("-Xmx512M", "-Xms128M"),
    ) -> None:
        assert kind in HOMES or kind == "original"
        self.kind = kind
        self.broker_id = broker_id
        self.port = port or free_port()
        self.zookeeper = zookeeper
        self.log_dir = log_dir or directory / "data"
        directory.mkdir(parents=True, exist_ok=True)
        values: dict[str, object] = {
            "broker.id": broker_id,
            "port": self.port,
            "host.name": "127.0.0.1",
            "log.dirs": self.log_dir,
            "zookeeper.connect": zookeeper,
            "zookeeper.session.timeout.ms": 1500,
            "zookeeper.connection.timeout.ms": 30000,
            "controlled.shutdown.enable": "true",
            "log.retention.hours": 1_000_000,  # tests write messages with times of long ago
            **(OURS if kind in HOMES else {}),
            **(props or {}),
        }
        self.config = directory / "server.properties"
        self.config.write_text(properties(values))
        super().__init__(f"{kind} broker {broker_id}", self._command(heap), directory)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _command(self, heap: tuple[str, ...]) -> list[str]:
        if self.kind in HOMES:
            return [str(HOMES[self.kind] / "bin" / "kafka-server-start.sh"), str(self.config)]
        log4j = self.config.with_name("log4j.properties")
        log4j.write_text(BROKER_LOG4J)
        return java("kafka.Kafka", str(self.config), heap=heap, log4j=log4j)

    def start(self, timeout: float = START_TIMEOUT_S) -> Broker:
        """Until it serves. First waits until ZooKeeper has forgotten a killed one of this id."""
        path = f"/brokers/ids/{self.broker_id}"
        wait_until(f"end of {path}", 30, lambda: zookeeper_text(self.zookeeper, path) is None)
        begin = time.monotonic()
        self.spawn()
        try:
            self.wait_for(STARTED, timeout)
        except AssertionError:
            self.kill()
            raise
        self.started_in_s = time.monotonic() - begin
        return self

    def wire(self, timeout: float = 30) -> Wire:
        return Wire(self.port, timeout=timeout)

    def create_topic(
        self,
        topic: str,
        partitions: int = 1,
        config: Mapping[str, object] | None = None,
        replicas: Sequence[int] | None = None,
    ) -> None:
        """Through ZooKeeper as TopicCommand does, every replica here (or on `replicas`, this
        broker first); returns once it leads."""
        with zookeeper_client(self.zookeeper) as client:
            values = {key: str(value) for key, value in (config or {}).items()}
            payload = json.dumps({"version": 1, "config": values}).encode()
            client.create(f"/config/topics/{topic}", payload, makepath=True)
            on = list(replicas or [self.broker_id])
            assignment = {str(number): on for number in range(partitions)}
            payload = json.dumps({"version": 1, "partitions": assignment}).encode()
            client.create(f"/brokers/topics/{topic}", payload, makepath=True)
        self.wait_for_leader(topic, partitions)

    def delete_topic(self, topic: str) -> None:
        """Ask for it; the broker needs delete.topic.enable."""
        with zookeeper_client(self.zookeeper) as client:
            client.create(f"/admin/delete_topics/{topic}", b"", makepath=True)

    def wait_for_leader(self, topic: str, partitions: int = 1) -> None:
        def led() -> bool:
            with self.wire() as wire:
                for number in range(partitions):
                    if wire.leader(topic, number) != self.broker_id:
                        return False
                    wire.offset(topic, number)
            return True

        wait_until(f"{topic} led by broker {self.broker_id}", START_TIMEOUT_S, led)


def zookeeper_text(zookeeper: str, path: str) -> str | None:
    """Data of a node, None when it (or the chroot) does not exist."""
    hosts, slash, chroot = zookeeper.partition("/")
    with zookeeper_client(hosts) as client:
        try:
            return client.get(slash + chroot + path)[0].decode()
        except NoNodeError:
            return None


def partition_state(zookeeper: str, topic: str, partition: int = 0) -> dict[str, Any]:
    """Leader, isr and epochs as ZooKeeper has them; empty before there is a state."""
    path = f"/brokers/topics/{topic}/partitions/{partition}/state"
    found: dict[str, Any] = json.loads(zookeeper_text(zookeeper, path) or "{}")
    return found


def isr(zookeeper: str, topic: str, partition: int = 0) -> list[int]:
    """The brokers in sync, by their ids; empty before there is a state."""
    return sorted(partition_state(zookeeper, topic, partition).get("isr", []))


class Result(NamedTuple):
    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


# Scripts of bin/ and the classes behind them; a class not here runs by kafka-run-class.sh.
SCRIPTS = {
    "kafka.admin.TopicCommand": "kafka-topics.sh",
    "kafka.tools.ConsoleConsumer": "kafka-console-consumer.sh",
    "kafka.tools.ConsoleProducer": "kafka-console-producer.sh",
    "kafka.tools.ConsumerOffsetChecker": "kafka-consumer-offset-checker.sh",
    "kafka.tools.ConsumerPerformance": "kafka-consumer-perf-test.sh",
    "kafka.tools.ProducerPerformance": "kafka-producer-perf-test.sh",
    "kafka.tools.SimpleConsumerShell": "kafka-simple-consumer-shell.sh",
}
_numbers = itertools.count()


class Tools:
    """The command line tools of one kind. Both kinds are named by class."""

    def __init__(self, kind: str, directory: Path) -> None:
        assert kind in KINDS
        self.kind = kind
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._log4j = directory / "tools-log4j.properties"
        self._log4j.write_text(TOOLS_LOG4J)

    def command(self, class_name: str, *args: str) -> list[str]:
        if self.kind == "original":
            heap = ["-Xmx256M", *SHORT_LIVED]
            return java(class_name, *args, heap=heap, log4j=self._log4j)
        if class_name in SCRIPTS:
            return [str(HOME / "bin" / SCRIPTS[class_name]), *args]
        return [str(HOME / "bin" / "kafka-run-class.sh"), class_name, *args]

    def run(
        self, class_name: str, *args: str, stdin: str = "", timeout: float = TOOL_TIMEOUT_S
    ) -> Result:
        env = environment(self.directory)
        env["KAFKA_LOG4J_OPTS"] = f"-Dlog4j.configuration=file:{self._log4j}"
        done = subprocess.run(
            self.command(class_name, *args),
            input=stdin.encode(),
            capture_output=True,
            timeout=timeout,
            env=env,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr.decode())

    def background(self, class_name: str, *args: str) -> Process:
        """The tool as a process with its output in `.log`; the caller stops it."""
        directory = self.directory / f"tool-{next(_numbers)}"
        process = Process(class_name, self.command(class_name, *args), directory)
        process.spawn()
        return process
