"""A service for tests of the socket server, and its client."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import gevent
from gevent import socket
from gevent.event import Event

from kafka08.log.segments.file_slice import FileSlice
from kafka08.metrics.requests import RequestMeter
from kafka08.network.connection_limits import ConnectionLimits
from kafka08.network.peer import current_peer
from kafka08.network.server import ConnectionClosed, Server
from kafka08.runtime import SystemClock

PATIENCE = 5.0


class Service:
    """The service of the tests' server: echoes, unless a frame says otherwise."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.addresses: list[str] = []
        self.ports: list[int] = []
        self.gate = Event()
        self.waiting = Event()
        self.slices: dict[bytes, FileSlice] = {}
        self.times: list[tuple[float, float, float]] = []
        self.meter = RequestMeter()

    def handle(self, frame: memoryview, address: str) -> list[Any] | None:
        body = bytes(frame)
        self.frames.append(body)
        host, _, port = address.rpartition(":")
        self.addresses.append(host)
        self.ports.append(int(port))
        if body.startswith(b"timed"):
            peer = current_peer.get()
            assert peer is not None
            self.times.append((peer.read_at, peer.begun_at, time.monotonic()))
            peer.unsent.append((self.meter, 0.0, 0.0, 0.0, time.monotonic()))
        if body == b"silent":
            return None
        if body.startswith(b"mute"):
            peer = current_peer.get()
            assert peer is not None
            peer.mute_seconds = float(body[4:])
        if body == b"close":
            raise ConnectionClosed("as told")
        if body == b"fail":
            raise ValueError("as told")
        if body == b"until the peer ends":
            ended = Event()
            peer = current_peer.get()
            assert peer is not None
            peer.wake = ended.set
            self.waiting.set()
            ended.wait()
            peer.wake = None
        if body == b"wait":
            self.waiting.set()
            self.gate.wait()
        if body in self.slices:
            part = self.slices[body]
            return [struct.pack(">i", len(part)), part]
        return [struct.pack(">i", len(body)), body]


class SocketClient:
    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self.sock = socket.create_connection((host, port), PATIENCE)

    def send(self, *bodies: bytes) -> None:
        self.sock.sendall(b"".join(framed(body) for body in bodies))

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            if not piece:
                raise EOFError(data)
            data += piece
        return data

    def reply(self) -> bytes:
        return self.read(struct.unpack(">i", self.read(4))[0])

    def call(self, body: bytes) -> bytes:
        self.send(body)
        return self.reply()

    def is_closed(self) -> bool:
        """Waits for the end; False if bytes come instead."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


Start = Callable[..., Server]
Connect = Callable[..., SocketClient]


def limits(**given: Any) -> ConnectionLimits:
    return ConnectionLimits(SystemClock(), **given)


def until(condition: Callable[[], bool]) -> None:
    """Let the server's greenlets run until something is so."""
    with gevent.Timeout(PATIENCE):
        while not condition():
            gevent.sleep(0)
