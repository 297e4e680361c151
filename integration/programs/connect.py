"""Workers of Kafka Connect 3.9 as processes, and what their REST API is asked."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from integration import builds
from integration.harness import Process, free_port, properties
from integration.modern import LOG4J
from integration.wire import wait_until

VERSION = "3.9.1"
ARTIFACTS = (
    f"org.apache.kafka:connect-mirror:{VERSION}",
    f"org.apache.kafka:connect-file:{VERSION}",
    "org.slf4j:slf4j-reload4j:1.7.36",
)
WAIT_S = 120.0
TEXT = "org.apache.kafka.connect.storage.StringConverter"
FILE = "org.apache.kafka.connect.file.FileStream"


def command(directory: Path, main: str, values: Mapping[str, object]) -> list[str]:
    """A class with a file of settings, which is written. MissingError when it cannot run here."""
    class_path = os.pathsep.join(f"{builds.jars(each)}/*" for each in ARTIFACTS)
    directory.mkdir(parents=True, exist_ok=True)
    config, log4j = directory / "settings.properties", directory / "log4j.properties"
    config.write_text(properties(values))
    log4j.write_text(LOG4J)
    logs = f"-Dlog4j.configuration=file:{log4j}"
    return ["java", *builds.HEAP, logs, "-cp", class_path, main, str(config)]


class RefusedError(OSError):
    """``status``: of the answer. 409 during a rebalance of the workers."""

    def __init__(self, status: int, text: bytes) -> None:
        super().__init__(f"{status} {text.decode()}")
        self.status = status


class Worker(Process):
    """Of a distributed cluster, which has the name of its group."""

    def __init__(self, address: str, group: str, directory: Path, **settings: object) -> None:
        self.port = free_port()
        values: dict[str, object] = {
            "bootstrap.servers": address,
            "group.id": group,
            "listeners": f"http://127.0.0.1:{self.port}",
            "rest.advertised.host.name": "127.0.0.1",
            "key.converter": TEXT,
            "value.converter": TEXT,
            "plugin.discovery": "service_load",
            "offset.flush.interval.ms": 300,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 1000,
            "scheduled.rebalance.max.delay.ms": 1000,
            "offset.storage.partitions": 2,
            "status.storage.partitions": 2,
        }
        for name in ("config", "offset", "status"):
            values[f"{name}.storage.topic"] = f"{group}-{name}"
            values[f"{name}.storage.replication.factor"] = 1
        values.update({key.replace("_", "."): value for key, value in settings.items()})
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        super().__init__("Connect", command(directory, main, values), directory)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer, None if it has no body. OSError if there is none yet; RefusedError."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        if answer.status >= 400:
            raise RefusedError(answer.status, text)
        return json.loads(text) if text else None

    def begin(self) -> Worker:
        self.spawn()
        return self

    def await_start(self) -> None:
        def lists() -> bool:
            assert self.alive, self.log[-3000:]
            return isinstance(self.ask("GET", "/connectors"), list)

        wait_until("a worker of Connect", WAIT_S, lists)

    def make(self, name: str, kind: str, **config: object) -> None:
        """``kind``: Source or Sink, of files. Asks again during a rebalance."""
        values = {"connector.class": f"{FILE}{kind}Connector", "tasks.max": "1", **config}

        def made() -> bool:
            return bool(self.ask("PUT", f"/connectors/{name}/config", values))

        wait_until(f"connector {name}", WAIT_S, made)
        wait_until(f"its task {name}", WAIT_S, lambda: self.task(name))

    def delete(self, name: str) -> None:
        def deleted() -> bool:
            try:
                self.ask("DELETE", f"/connectors/{name}")
            except RefusedError as error:
                if error.status == 404:
                    return True
                raise
            return name not in self.ask("GET", "/connectors")

        wait_until(f"the end of {name}", WAIT_S, deleted)

    def task(self, name: str) -> str:
        """The address of the worker that runs it; empty if none does."""
        (*_, task) = self.ask("GET", f"/connectors/{name}/status")["tasks"] or [{}]
        return str(task["worker_id"]) if task.get("state") == "RUNNING" else ""
