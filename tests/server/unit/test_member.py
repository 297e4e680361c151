"""The process of a broker of a unit, without a broker."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest

_CODE = """\
import sys
from kafka08.server import main
def serve(config, started):
    print(config.broker_id, config.port, flush=True)
    started()
    import time
    time.sleep(60)
main.serve = serve
from kafka08.server.unit.member import main
sys.exit(main(["server.properties", "5"]))
"""


class Child(NamedTuple):
    process: subprocess.Popen[bytes]
    socket: socket.socket


@pytest.fixture
def child() -> Iterator[Child]:
    ours, theirs = socket.socketpair()
    ours.settimeout(60)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", _CODE],
            stdin=theirs.fileno(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    with process, ours:
        yield Child(process, ours)


def test_it_serves_what_it_is_told_and_ends_with_the_supervisor(child: Child) -> None:
    found = {"broker.id": "5", "port": "99", "zookeeper.connect": "z:1"}
    child.socket.sendall(json.dumps(found).encode() + b"\n")
    assert child.socket.recv(99) == b"started\n"
    child.socket.close()
    out, err = child.process.communicate(timeout=60)
    assert out == b"5 99\n"
    assert b"The supervisor of this broker has died, so the broker stops" in err
    assert child.process.returncode == -15  # here nothing handles the signal


def test_bad_settings(child: Child) -> None:
    child.socket.sendall(b'{"broker.id": "x"}\n')
    _, err = child.process.communicate(timeout=60)
    assert child.process.returncode == 1
    assert b"broker.id has value x which is not an integer" in err


def test_without_a_supervisor(child: Child) -> None:
    child.socket.close()
    out, _ = child.process.communicate(timeout=60)
    assert (child.process.returncode, out) == (
        1,
        b"USAGE: only kafka.Kafka starts this class, if broker.processes is above 1\n",
    )
