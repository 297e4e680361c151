"""The processes of a cluster: ZooKeepers and brokers of either kind, each on a host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from integration import modern
from integration.cluster.hosts import Host
from integration.harness import BROKER_LOG4J, HOME, STARTED, Process, java, properties

TIMEOUT_S = 90
TICK_MS = 500


class HostedProcess(Process):
    """A process on a host, started the way that host starts processes."""

    host: Host

    def spawn(self) -> None:
        if self.host.popen is None:
            super().spawn()
            return
        assert not self.alive, f"{self.name} is already running"
        self.directory.mkdir(parents=True, exist_ok=True)
        self.log_path.touch()
        self._mark = self.log_path.stat().st_size
        self._child = self.host.popen(self.command, self.directory, self.log_path)


class ZooKeeperNode(HostedProcess):
    """One ZooKeeper, alone or of an ensemble."""

    def __init__(self, directory: Path, host: Host, number: int, ports: tuple[int, ...]) -> None:
        self.host = host
        self.number = number
        self.port, self.peer_port, self.election_port = ports
        self._config = directory / "zookeeper.properties"
        super().__init__(f"ZooKeeper {number}", [], directory)

    @property
    def address(self) -> str:
        return f"{self.host.address}:{self.port}"

    def configure(self, ensemble: Sequence[ZooKeeperNode]) -> None:
        data = self.directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        (data / "myid").write_text(str(self.number))
        values: dict[str, object] = {
            "dataDir": data,
            "clientPort": self.port,
            "clientPortAddress": self.host.address,
            "maxClientCnxns": 0,
            "tickTime": TICK_MS,
            "maxSessionTimeout": 60000,
            "initLimit": 40,
            "syncLimit": 20,
        }
        if len(ensemble) > 1:
            for peer in ensemble:
                peers = f"{peer.host.address}:{peer.peer_port}:{peer.election_port}"
                values[f"server.{peer.number}"] = peers
        self._config.write_text(properties(values))
        script = str(HOME / "bin" / "zookeeper-server-start.sh")
        self.command = [*self.host.prefix, script, str(self._config)]


class BrokerNode(HostedProcess):
    """One broker on its host. `start` waits until it serves, `spawn` does not."""

    def __init__(
        self,
        kind: str,
        broker_id: int,
        directory: Path,
        host: Host,
        port: int,
        props: Mapping[str, object],
    ) -> None:
        self.kind = kind
        self.id = broker_id
        self.host = host
        self.port = port
        self.data = directory / "data"
        directory.mkdir(parents=True, exist_ok=True)
        self.config = directory / f"server-{broker_id}.properties"
        values = {"broker.id": broker_id, "port": port, "host.name": host.address}
        values["log.dirs"] = self.data
        if kind == "modern":
            del values["port"], values["host.name"]
            values["listeners"] = f"PLAINTEXT://{host.address}:{port}"
        self.props = {**values, **props}
        self.config.write_text(properties(self.props))
        command = [str(HOME / "bin" / "kafka-server-start.sh"), str(self.config)]
        if kind == "original":
            log4j = directory / "log4j.properties"
            log4j.write_text(BROKER_LOG4J)
            heap = ("-Xmx256M", "-Xms64M", "-XX:TieredStopAtLevel=1")
            command = java("kafka.Kafka", str(self.config), heap=heap, log4j=log4j)
        elif kind == "modern":
            command = modern.command(directory, "kafka.Kafka", str(self.config))
        name = f"{kind} broker {broker_id}"
        super().__init__(name, [*host.prefix, *command], directory)

    def start(self) -> BrokerNode:
        self.spawn()
        self.await_started()
        return self

    def await_started(self) -> None:
        self.wait_for(STARTED, TIMEOUT_S)

    def segments(self, topic: str, partition: int) -> list[Path]:
        return sorted((self.data / f"{topic}-{partition}").glob("*.log"))

    def log_bytes(self, topic: str, partition: int) -> bytes:
        return b"".join(path.read_bytes() for path in self.segments(topic, partition))
