"""The bytes that a broker has counted, read from its beans over HTTP (``http.port`` of the broker).

One request on a connection of its own, of a bounded length and within a bounded time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import NamedTuple

from kafka08.client.cluster import Endpoint
from kafka08.errors import KafkaError
from kafka08.runtime import Runtime, Socket

ALL_TOPICS = ""
_PATH = "/jmx?qry=kafka.server:type=BrokerTopicMetrics,name=Bytes*PerSec,*"
_PIECE = 1 << 16
MOST_BYTES = 64 << 20


class ByteCounts(NamedTuple):
    """Bytes since the start of a broker, by topic, and under ``ALL_TOPICS`` of all together."""

    bytes_in: Mapping[str, int]
    bytes_out: Mapping[str, int]


def byte_counts(runtime: Runtime, endpoint: Endpoint, timeout: float) -> ByteCounts:
    """Takes up to ``timeout`` seconds for the connection, for each piece of the answer, and twice
    that in all. Raises OSError, and KafkaError for an answer that is not a broker's."""
    deadline = runtime.clock.monotonic() + 2 * timeout
    with closing(runtime.connect(*endpoint, timeout)) as sock:
        # After HTTP/1.0 the answer comes in one piece, and the connection ends with it.
        sock.sendall(f"GET {_PATH} HTTP/1.0\r\nHost: {_named(endpoint)}\r\n\r\n".encode())
        answer = b"".join(_received(runtime, sock, deadline))
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or words[1] != b"200":
        code = words[1].decode("ascii", "replace")[:3] if len(words) > 1 else "nothing"
        raise KafkaError(f"its metrics over HTTP are not there: it answers {code}")
    try:
        return _counts(json.loads(body))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise KafkaError("its metrics over HTTP are not beans of a broker") from None


def _received(runtime: Runtime, sock: Socket, deadline: float) -> Iterator[bytes]:
    """Raises TimeoutError, and KafkaError for an answer without an end."""
    size = 0
    while piece := sock.recv(_PIECE):
        yield piece
        size += len(piece)
        if size > MOST_BYTES:
            raise KafkaError(f"its metrics over HTTP are longer than {MOST_BYTES} bytes")
        if runtime.clock.monotonic() > deadline:
            raise TimeoutError("timed out")


def _named(endpoint: Endpoint) -> str:
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _counts(answer: Mapping[str, list[Mapping[str, object]]]) -> ByteCounts:
    """Raises the errors of values that are of other types."""
    counts: dict[str, dict[str, int]] = {"BytesInPerSec": {}, "BytesOutPerSec": {}}
    for bean in answer["beans"]:
        name, count = bean["name"], bean["Count"]
        if not isinstance(name, str) or not isinstance(count, int) or count < 0:
            raise TypeError(name)
        has = dict(each.split("=", 1) for each in name.partition(":")[2].split(","))
        of = counts.get(has["name"])
        if of is not None:
            of[has.get("topic", ALL_TOPICS)] = count
    for of in counts.values():
        of[ALL_TOPICS]  # it is there before there is a topic
    return ByteCounts(counts["BytesInPerSec"], counts["BytesOutPerSec"])
