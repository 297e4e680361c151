"""A broker with logins, and a socket that speaks them byte by byte."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from integration.harness import Broker, Tools, free_port

USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
DELAY_S = 0.1

VERSIONS_0 = "0012 0000 00000001 0001 63"
HANDSHAKE_0 = "0011 0000 00000002 0001 63 0005 504c41494e"
HANDSHAKE_1 = "0011 0001 00000002 0001 63 0005 504c41494e"
METADATA = "0003 0000 00000009 0001 63 00000000"


def jaas(name: str, password: str, module: str = PLAIN_MODULE) -> str:
    return f'{module} required username="{name}" password="{password}";'


class SaslBroker(Broker):
    """``address`` is that of the old plain listener, ``sasl_port`` the port with logins."""

    def __init__(
        self, directory: Path, zookeeper: str, broker_id: int = 0, **props: object
    ) -> None:
        self.sasl_port = free_port()
        port = free_port()
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        super().__init__(
            "ours",
            directory,
            zookeeper,
            broker_id=broker_id,
            port=port,
            props={
                "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:"
                f"{self.sasl_port}",
                "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
                "sasl.jaas.config": f'{PLAIN_MODULE} required username="admin" '
                f'password="admin-secret" {users};',
                "num.partitions": 1,
                "zookeeper.session.timeout.ms": 6000,
                "zookeeper.connection.timeout.ms": 60000,
                "offsets.topic.num.partitions": 1,
                **{key.replace("_", ".").replace("..", "_"): value for key, value in props.items()},
            },
        )

    @property
    def sasl_address(self) -> str:
        return f"127.0.0.1:{self.sasl_port}"

    def raw(self, timeout: float = 30, source: str = "127.0.0.1") -> Raw:
        return Raw(self.sasl_port, timeout, source)

    def set_user(self, tools: Tools, name: str, *words: str) -> None:
        """kafka-configs --alter of a user."""
        user = ("--entity-type", "users", "--entity-name", name)
        command = ("--zookeeper", self.zookeeper, "--alter", *user, *words)
        done = tools.run("kafka.admin.ConfigCommand", *command)
        assert done.code == 0, done.err


class Raw:
    """A connection that sends and receives whole frames as bytes."""

    def __init__(self, port: int, timeout: float, source: str) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout, (source, 0))

    def send(self, frame: str | bytes) -> None:
        data = bytes.fromhex(frame.replace(" ", "")) if isinstance(frame, str) else frame
        self.sock.sendall(len(data).to_bytes(4, "big") + data)

    def receive(self) -> bytes | None:
        """A frame without its size word; None if the connection was closed without a byte."""
        size = self._read(4)
        return None if size is None else self._read(int.from_bytes(size, "big"))

    def _read(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                more = self.sock.recv(size - len(data))
            except ConnectionResetError:
                more = b""
            if not more:
                assert not data, f"closed after {data!r}"
                return None
            data += more
        return data

    def ask(self, frame: str | bytes) -> bytes | None:
        self.send(frame)
        return self.receive()

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()


def plain_token(name: str, password: str, authorization_id: str = "") -> bytes:
    return f"{authorization_id}\0{name}\0{password}".encode()


def authenticate(token: bytes) -> bytes:
    head = bytes.fromhex("0024 0000 00000003 0001 63")
    return head + len(token).to_bytes(4, "big") + token
