"""A real broker process on loopback for the tests of this folder, with a real ZooKeeper.

Everything it writes is below one directory; its port is the system's choice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from kafka08 import admin
from kafka08.errors import KafkaError, raise_for_code
from kafka08.message.sets import encode_set, iter_messages
from kafka08.network.channel import Channel
from kafka08.protocol.schemas import (
    ConsumerMetadataRequest,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    MetadataRequest,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from tests.zk import server as zookeeper
from zk.registry import read_broker

BROKER_ID = 77
PATIENCE_SECONDS = 30.0

_MAIN = """
import sys
from kafka08 import log4j
from kafka08.server.main import main
log4j.configure(sys.argv[1])
sys.exit(main(sys.argv[2:]))
"""
_LOG4J = """\
log4j.rootLogger=ERROR, file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File={path}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class LiveBroker:
    """Started when made. ``stop`` or ``kill`` it; both leave ``data`` to look at."""

    def __init__(self, directory: Path, **settings: object) -> None:
        directory.mkdir()
        self.data = directory / "data"
        self.log_file = directory / "server.log"
        self.console = directory / "console"
        connect = zookeeper.fresh_chroot()
        properties = {
            "broker_id": BROKER_ID,
            "host_name": "127.0.0.1",
            "port": 0,
            "log_dirs": self.data,
            "zookeeper_connect": connect,
            "log_index_size_max_bytes": 4096,
            "offsets_topic_num_partitions": 2,
            "offsets_topic_replication_factor": 1,
            "controlled_shutdown_enable": "false",
            **settings,
        }
        text = [f"{key.replace('_', '.')}={value}\n" for key, value in properties.items()]
        (directory / "server.properties").write_text("".join(text))
        (directory / "log4j.properties").write_text(_LOG4J.format(path=self.log_file))
        with self.console.open("wb") as console:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-c", _MAIN),
                    *(directory / "log4j.properties", directory / "server.properties"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
            )
        self.zk = zookeeper.connect(connect)
        try:
            self.port = self._await_registration()
            self.client = self.channel()
        except BaseException:
            self.kill()
            raise

    def _await_registration(self) -> int:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = read_broker(self.zk, BROKER_ID)
            if found is not None:
                return found.port
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the broker did not start:\n{self.told()}")
            time.sleep(0.02)

    def told(self) -> str:
        """Everything the broker has logged or printed."""
        paths = [path for path in (self.console, self.log_file) if path.exists()]
        return "".join(path.read_text(errors="replace") for path in paths)

    def channel(self, timeout_ms: int = 10_000) -> Channel:
        return Channel("127.0.0.1", self.port, client_id="live", timeout_ms=timeout_ms)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        return self._end(signal.SIGTERM)

    def kill(self) -> int:
        return self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int:
        if self.alive:
            self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE_SECONDS)
        finally:
            if self.alive:
                self.process.kill()
                self.process.wait()
            self.zk.close()
            if hasattr(self, "client"):
                self.client.close()

    # The resources of the process

    def peak_memory(self) -> int:
        """The most resident bytes since the start or ``reset_peak_memory``."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (peak,) = [line for line in lines if line.startswith("VmHWM:")]
        return int(peak.split()[1]) * 1024

    def reset_peak_memory(self) -> int:
        """The resident bytes now, from which on the peak counts."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        return self.peak_memory()

    def open_files(self) -> list[str]:
        """The targets of its file descriptors: paths, sockets, pipes."""
        folder = f"/proc/{self.process.pid}/fd"
        found = []
        for name in os.listdir(folder):
            try:
                found.append(os.readlink(os.path.join(folder, name)))
            except FileNotFoundError:
                pass
        return sorted(found)

    def memory(self) -> int:
        """Resident bytes."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    # A good client

    def create_topic(self, topic: str, partitions: int = 1, **config: str) -> None:
        """Create a topic and wait until each partition takes messages."""
        overrides = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topic(self.zk, topic, partitions, 1, overrides)
        for partition in range(partitions):
            self.until(lambda p=partition: self.fetch(topic, 0, partition=p))
        self.until(lambda: self.leaders(topic))

    def create_offsets_topic(self) -> None:
        """Have the topic of committed offsets made, and wait for its coordinators."""

        def found() -> bool:
            answers = [self.client.call(ConsumerMetadataRequest(group)) for group in "ab"]
            return all(answer.error == 0 for answer in answers)

        self.until(found)

    def until(self, condition: object) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                if condition() is not False:  # type: ignore[operator]
                    return
                reason: object = "not yet"
            except (KafkaError, OSError) as error:
                reason = error
            if time.monotonic() > deadline:
                raise RuntimeError(f"{reason}\n{self.told()}")
            time.sleep(0.02)

    def leaders(self, topic: str) -> dict[int, int]:
        (answer,) = self.client.call(MetadataRequest([topic])).topics
        raise_for_code(answer.error)
        for partition in answer.partitions:
            raise_for_code(partition.error)
        return {partition.partition: partition.leader for partition in answer.partitions}

    def produce(self, topic: str, *values: bytes, partition: int = 0, acks: int = -1) -> int:
        """The base offset. Raises KafkaError."""
        data = memoryview(encode_set([(None, value) for value in values]))
        topics = [ProduceTopic(topic, [ProducePartition(partition, data)])]
        answer = self.client.call(ProduceRequest(acks, 5000, topics)).topics[0].partitions[0]
        raise_for_code(answer.error)
        return int(answer.base_offset)

    def fetch(self, topic: str, offset: int, *, partition: int = 0) -> list[tuple[int, bytes]]:
        """(offset, value) from an offset on. Raises KafkaError."""
        topics = [FetchTopic(topic, [FetchPartition(partition, offset, 1 << 20)])]
        answer = self.client.call(FetchRequest(-1, 0, 1, topics)).topics[0].partitions[0]
        raise_for_code(answer.error)
        return [(m.offset, m.value or b"") for m in iter_messages(answer.message_set)]
