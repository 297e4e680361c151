"""Replies of bytes and slices of files, whole and in order, to a peer that reads slowly."""

from __future__ import annotations

import os
from pathlib import Path

import gevent
from gevent import socket

from kafka08.log.segments.file_slice import FileSlice, SegmentFile
from kafka08.network.sending import READ_BYTES, joined, send_parts
from kafka08.network.transport import PlainSocket

LONG = os.urandom(40 * READ_BYTES)


def test_parts_arrive_whole_and_in_order(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(LONG)
    file = SegmentFile.open(str(tmp_path / "log"))
    short, long = FileSlice(file, 5, 100), FileSlice(file, 4097, len(LONG) - 4097)
    parts = [b"head", short, LONG, memoryview(b"between"), long, long, b"end"]
    expected = b"".join([b"head", LONG[5:105], LONG, b"between", *[LONG[4097:]] * 2, b"end"])
    assert joined([b"one"]) == b"one"
    assert joined(parts) == expected
    left, right = socket.socketpair()
    sender = PlainSocket(fileno=left.detach())
    sender.setblocking(False)
    task = gevent.spawn(lambda: (send_parts(sender, parts), sender.close()))
    received = bytearray()
    while data := right.recv(1 << 16):
        received += data
    task.get()
    right.close()
    assert received == expected
