"""Steps 6 to 10 of the quick start, a cluster of three: `python -m integration.quickstart_cluster`.

Three brokers from copies of one configuration, a replicated topic, kill -9 of its leader found
among the processes, and the same messages again. Every command is echoed, what it prints is
compared line by line, and nothing is left running or lying about. Where the machine allows, all of
it happens in a process namespace of its own, because kafka-server-stop.sh stops every broker it
can see.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from integration.harness import free_port
from integration.quickstart import (
    CODE_OF_INT,
    TIMEOUT_S,
    Failed,
    Setup,
    Shell,
    _await_zookeeper,
    _rewrite,
    expect,
    heed_interrupts,
    private_copy,
    taken,
)

TOPIC = "my-replicated-topic"
LINES = ["my test message 1", "my test message 2"]
CODE_OF_TERM = 143
UNSHARED = "KAFKA08_QUICKSTART_UNSHARED"
UNSHARE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


class Partition(NamedTuple):
    """The only partition of a topic, as describe prints it."""

    leader: int
    replicas: list[int]
    isr: list[int]


class Cluster:
    """The commands of the tutorial with the addresses of this run filled in."""

    def __init__(self, shell: Shell, setup: Setup, directory: Path) -> None:
        self.shell = shell
        self.zookeeper = f"{setup.host}:{setup.zookeeper_port}"
        self.brokers = f"{setup.host}:{setup.server_port}"
        self.configs = [setup.server_config]
        self.children: list[tuple[subprocess.Popen[bytes], Path]] = []
        self._directory = directory

    def copy_config(self, home: Path, broker_id: int, port: int, log_dir: Path) -> None:
        """`cp`, then the three edits the tutorial asks for."""
        source, target = Path(self.configs[0]), self._directory / f"server-{broker_id}.properties"
        print(f"$ cp {source} {target}")
        print(f"# {target.name}: broker.id={broker_id} port={port} log.dir={log_dir}")
        text = (home / source).read_text()
        kept = [line for line in text.splitlines() if not line.startswith("log.dirs=")]
        target.write_text("\n".join([*kept, ""]))
        _rewrite(target, target, {"broker.id": broker_id, "port": port, "log.dir": log_dir})
        self.configs.append(str(target))

    def start(self, config: str) -> None:
        child = self.shell.background("bin/kafka-server-start.sh", config)
        self.children.append(child)
        self.shell.wait_for(*child, "started (kafka.server.KafkaServer)")

    def topics(self, action: str, *args: str) -> list[str]:
        script = "bin/kafka-topics.sh"
        return self.shell.run(script, f"--{action}", "--zookeeper", self.zookeeper, *args)

    def describe(self, topic: str, replication: int) -> Partition:
        """The partition, every character besides the ids checked."""
        lines = self.topics("describe", "--topic", topic)
        header = f"Topic:{topic}\tPartitionCount:1\tReplicationFactor:{replication}\tConfigs:"
        expect(lines[:1], [header])
        fields = dict(field.partition(": ")[::2] for field in lines[1].strip().split("\t"))
        try:
            found = Partition(
                int(fields["Leader"]),
                [int(each) for each in fields["Replicas"].split(",")],
                [int(each) for each in fields["Isr"].split(",")],
            )
        except (KeyError, ValueError) as error:
            raise Failed(f"unexpected {lines[1]!r}") from error
        replicas, isr = (",".join(map(str, ids)) for ids in found[1:])
        shown = f"\tTopic: {topic}\tPartition: 0\tLeader: {found.leader}"
        expect(lines[1:], [f"{shown}\tReplicas: {replicas}\tIsr: {isr}"])
        return found

    def consume(self) -> None:
        """Both messages from the beginning, then Ctrl-C."""
        consumer, output = self.shell.background(
            *("bin/kafka-console-consumer.sh", "--zookeeper", self.zookeeper),
            *("--from-beginning", "--topic", TOPIC),
        )
        self.shell.wait_for(consumer, output, *LINES)
        consumer.send_signal(2)
        code = consumer.wait(TIMEOUT_S)
        expect([str(128 - code if code < 0 else code)], [str(CODE_OF_INT)])
        expect([line for line in output.read_text().splitlines() if line in LINES], LINES)

    def kill(self, broker_id: int) -> None:
        """`ps ax | grep server-N.properties`, then kill -9 of what it shows. /proc is read in
        place of ps, which small machines do not have."""
        name = Path(self.configs[broker_id]).name
        print(f"$ ps ax | grep {name}")
        found = {
            pid: words
            for pid, words in command_lines().items()
            if words[-1] == self.configs[broker_id] and "kafka.Kafka" in words
        }
        for pid, words in found.items():
            print(f"{pid} {shlex.join(words)}")
        if len(found) != 1 or not any("java" in word for words in found.values() for word in words):
            raise Failed(f"{len(found)} processes of {name} run, or none with java in it")
        [pid] = found
        child = self.children[broker_id][0]
        if pid != child.pid:
            raise Failed(f"{pid} runs the broker, the script became {child.pid}")
        print(f"$ kill -9 {pid}")
        os.kill(pid, 9)
        child.wait(TIMEOUT_S)

    def stop(self, killed: int) -> None:
        """kafka-server-stop.sh, or SIGTERM where it would reach other people's brokers."""
        alive = [child for number, child in enumerate(self.children) if number != killed]
        if os.environ.get(UNSHARED):
            self.shell.run("bin/kafka-server-stop.sh")
        else:
            print("# no process namespace: SIGTERM by process id instead of kafka-server-stop.sh")
            for child, _ in alive:
                child.terminate()
        for child, output in alive:
            code = child.wait(TIMEOUT_S)
            expect([str(128 - code if code < 0 else code)], [str(CODE_OF_TERM)])
            if "shut down completed" not in output.read_text():
                raise Failed(f"a broker ended without 'shut down completed': {output}")


def command_lines() -> dict[int, list[str]]:
    """The words of every process that has any, by process id."""
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if text := (directory / "cmdline").read_bytes():
                words = os.fsdecode(text).removesuffix("\0").split("\0")
                found[int(directory.name)] = words
    return found


def steps(cluster: Cluster) -> None:
    """Steps 7 to 10; Failed at the first surprise."""
    created = ["--replication-factor", "3", "--partitions", "1", "--topic", TOPIC]
    expect(cluster.topics("create", *created), [f'Created topic "{TOPIC}".'])
    before = _await(lambda: cluster.describe(TOPIC, 3), lambda p: len(p.isr) == 3)
    if sorted(before.replicas) != [0, 1, 2] or sorted(before.isr) != [0, 1, 2]:
        raise Failed(f"replicas or isr are not 0, 1 and 2: {before}")
    if before.leader != before.replicas[0]:
        raise Failed(f"the first replica does not lead: {before}")
    if cluster.describe("test", 1) != (0, [0], [0]):
        raise Failed("topic test is not where it was made")

    produce = ["bin/kafka-console-producer.sh", "--broker-list", cluster.brokers]
    cluster.shell.run(*produce, "--topic", TOPIC, stdin="".join(f"{line}\n" for line in LINES))
    cluster.consume()

    cluster.kill(before.leader)
    after = _await(lambda: cluster.describe(TOPIC, 3), lambda p: p.leader != before.leader)
    survivors = [each for each in before.isr if each != before.leader]
    first = next(each for each in before.replicas if each in survivors)
    if (after.leader, after.replicas) != (first, before.replicas):
        raise Failed(f"{before} became {after}, not led by {first}")
    if sorted(after.isr) != sorted(survivors):
        raise Failed(f"the isr is {after.isr}, not {survivors}")
    cluster.consume()
    cluster.stop(before.leader)


def _await(probe, done):  # type: ignore[no-untyped-def]
    """The result of `probe`, which is called again until `done` accepts it or time is up."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            found = probe()
            if done(found):
                return found
            problem = Failed(f"still {found} after {TIMEOUT_S} s")
        except Failed as failed:
            problem = failed
        if time.monotonic() > deadline:
            raise problem
        time.sleep(0.5)


def run(home: Path, directory: Path) -> None:
    """Everything from the ZooKeeper on; the caller's Shell ends what is left."""
    extra = [Path(f"/tmp/kafka-logs-{number}") for number in (1, 2)]
    reason = taken() or next((f"{path} exists" for path in extra if path.exists()), "")
    ports = [9093, 9094]
    if reason:
        print(f"# {reason}: copies of the configuration, free ports, private directories")
        setup = private_copy(home, directory)
        extra = [directory / path.name for path in extra]
        ports = []
        while len(ports) < 2:
            port = free_port()
            if port not in (setup.zookeeper_port, setup.server_port, *ports):
                ports.append(port)
    else:
        setup = Setup("config/zookeeper.properties", "config/server.properties", 2181, 9092)
    shell = Shell(home, directory)
    try:
        shell.background("bin/zookeeper-server-start.sh", setup.zookeeper_config)
        _await_zookeeper(setup)
        cluster = Cluster(shell, setup, directory)
        cluster.start(cluster.configs[0])
        test = ["--replication-factor", "1", "--partitions", "1", "--topic", "test"]
        expect(cluster.topics("create", *test), ['Created topic "test".'])
        for number in (1, 2):
            cluster.copy_config(home, number, ports[number - 1], extra[number - 1])
            cluster.start(cluster.configs[number])
        steps(cluster)
    finally:
        shell.end()
        if not reason:
            for path in ("/tmp/zookeeper", "/tmp/kafka-logs", *extra):
                shutil.rmtree(path, ignore_errors=True)


def _can_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.quickstart_cluster")
    here = Path(__file__).resolve().parent.parent
    parser.add_argument("--home", type=Path, default=here, help="the installation to try")
    home = parser.parse_args().home.resolve()
    heed_interrupts()
    if UNSHARED not in os.environ and _can_unshare():
        command = [*UNSHARE, sys.executable, "-m", __spec__.name, *sys.argv[1:]]
        environment = {**os.environ, UNSHARED: "1"}
        return subprocess.run(command, env=environment, check=False).returncode
    with tempfile.TemporaryDirectory(prefix="kafka08-quickstart-") as name:
        try:
            run(home, Path(name))
        except (Failed, subprocess.TimeoutExpired) as failed:
            print(f"FAILED: {failed}")
            return 1
    print("The cluster of the quick start works.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
