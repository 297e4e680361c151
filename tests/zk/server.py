"""One real ZooKeeper for the whole test run, started when a test first asks for it."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss, KazooException

from tools.admin import zookeeper_server
from zk.access import UNSECURED, NodeAccess
from zk.client import ZkClient

SESSION_TIMEOUT_MS = 4000
_JVM = "-Xmx128M -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_numbers = itertools.count()
_log = Path(tempfile.gettempdir(), f"zookeeper-{os.getpid()}", "log")


@functools.cache
def _start() -> str | zookeeper_server.NoServerError:
    """Its address, or why there is none."""
    directory = _log.parent
    directory.mkdir()
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = directory / "zookeeper.properties"
    config.write_text(
        f"dataDir={directory / 'data'}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        "maxClientCnxns=0\ntickTime=200\n"
    )
    try:
        words = zookeeper_server.command(
            [str(config)], {**os.environ, "KAFKA_HEAP_OPTS": _JVM, "KAFKA_OPTS": ""}
        )
    except zookeeper_server.NoServerError as error:
        return error
    log = _log.open("wb")
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    log.close()
    atexit.register(process.wait)
    atexit.register(process.kill)
    _await_port(port, process, _log)
    return f"127.0.0.1:{port}"


def _await_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(b"ruok")
                if connection.recv(4) == b"imok":
                    return
        except OSError:
            pass
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"ZooKeeper did not start:\n{log.read_text()}")
        time.sleep(0.05)


def address() -> str:
    """host:port, or skip the test."""
    started = _start()
    if isinstance(started, zookeeper_server.NoServerError):
        pytest.skip(f"no ZooKeeper: {started}")
    return started


def log_text() -> str:
    """The output of the server so far."""
    return _log.read_text()


def fresh_chroot() -> str:
    """A connect string to an empty part of the tree."""
    return f"{address()}/test-{next(_numbers)}"


def connect(to: str, *, gevent: bool = False, access: NodeAccess = UNSECURED) -> ZkClient:
    return ZkClient(
        to,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        connection_timeout_ms=20000,
        gevent=gevent,
        access=access,
    ).start()


def kazoo_of(client: ZkClient) -> Any:
    """The library's client, for what only it can do to a session."""
    return client._zk


def lost_answer(client: ZkClient) -> Any:
    """The result of an asynchronous call whose answer was lost with the connection."""
    lost = kazoo_of(client).handler.async_result()
    lost.set_exception(ConnectionLoss())
    return lost


def lose_next_answer(client: ZkClient, call: str) -> None:
    """Have the library's next ``call`` carried out, but its answer lost."""
    library = kazoo_of(client)
    real = getattr(library, call)

    def once(*args: object, **kwargs: object) -> Any:
        delattr(library, call)
        with suppress(KazooException):
            real(*args, **kwargs).get()
        return lost_answer(client)

    setattr(library, call, once)


def break_connection(client: ZkClient) -> None:
    kazoo_of(client)._connection._socket.shutdown(socket.SHUT_RDWR)
