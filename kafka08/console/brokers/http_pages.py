"""The pages that brokers serve over HTTP: where those of each broker are, and what they say.

A broker says by its settings ``http.host`` and ``http.port`` where its pages are, unless the
console has an address for it (``console.broker.http``). 0.8.2.2 has none. A page is one request on
a connection of its own, of a bounded length and within a bounded time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Final, NamedTuple

from kafka08.client.cluster import ClusterClient, Endpoint
from kafka08.common import Broker, bare
from kafka08.console.cluster_state import BrokerView
from kafka08.console.config import ConsoleConfig
from kafka08.errors import KafkaError
from kafka08.network.hosts import first_address, is_own_address
from kafka08.network.http import is_loopback
from kafka08.protocol import admin_schemas as a
from kafka08.runtime import Runtime, Socket

MOST_BYTES = 64 << 20
_HOST, _PORT = "http.host", "http.port"
_ALL_ADDRESSES = ("", "0.0.0.0", "::")
_PIECE = 1 << 16
# Registrations of the two are the same.
_NOT_ASKED = (
    "it serves nothing over HTTP if it is of 0.8.2.2; if it has api.versions.enable=false, "
    "console.broker.http has to say where"
)
_REASONS: Final = {
    b"404": "it has no page {path}: is its release older than this console's?",
    b"421": "it does not take the name {host}: add it to its http.allowed.hosts",
}


class _Found(NamedTuple):
    """Where a broker that registered at ``since_ms`` serves its pages."""

    since_ms: int | None
    endpoint: Endpoint


class BrokerPages:
    """``resolve`` gives the first address of a host, ``is_here`` whether an address is one of this
    machine; both as blocking calls. Any number of tasks at a time."""

    def __init__(
        self,
        cluster: ClusterClient,
        config: ConsoleConfig,
        runtime: Runtime,
        resolve: Callable[[str], str] | None = None,
        is_here: Callable[[str], bool] | None = None,
    ) -> None:
        self._cluster = cluster
        self._configured = config.http_endpoints()
        self._timeout = config.request_timeout_ms / 1000
        self._runtime = runtime
        self._resolve = resolve or address_of
        self._is_here = is_here or is_own_address
        self._found: dict[int, _Found] = {}

    def read(self, broker: BrokerView, path: str) -> bytes:
        """The body of a page. Raises KafkaError, which says why there is none."""
        try:
            return page(self._runtime, self._endpoint(broker), path, self._timeout)
        except (OSError, KafkaError) as error:
            # A new look at its settings next time.
            self._found.pop(broker.id, None)
            raise KafkaError(getattr(error, "strerror", None) or str(error)) from error

    def _endpoint(self, broker: BrokerView) -> Endpoint:
        """Raises OSError and KafkaError, which says why it is not known."""
        if broker.id in self._configured:
            return self._configured[broker.id]
        if broker.is_ours is None:
            raise KafkaError("its registration cannot be read")
        if not broker.is_ours:
            raise KafkaError(_NOT_ASKED)
        found = self._found.get(broker.id)
        if found is None or found.since_ms != broker.since_ms:
            node = self._cluster.broker(broker.id)
            if node is None:
                raise KafkaError("no broker says where it is")
            found = self._found[broker.id] = _Found(broker.since_ms, self._told(node))
        return found.endpoint

    def _told(self, node: Broker) -> Endpoint:
        """Where the broker serves its pages, by its settings."""
        asked = a.DescribedResource(a.BROKER_RESOURCE, str(node.id), [_HOST, _PORT])
        answer = self._cluster.call(node, a.DescribeConfigsRequest([asked]))
        [resource] = answer.resources
        if resource.error:
            raise KafkaError(resource.message or "it does not show its settings to the console")
        told = {entry.name: entry.value or "" for entry in resource.entries}
        port = told.get(_PORT, "")
        if not port.isdecimal() or port == "0":
            raise KafkaError(f"it serves nothing over HTTP ({_PORT} is {port or 'not set'})")
        return self._address(bare(told.get(_HOST, "")), bare(node.host)), int(port)

    def _address(self, host: str, advertised: str) -> str:
        """``host``: what the broker listens on. Its own machine's loopback is another one on any
        other machine."""
        address = self._runtime.blocking(self._resolve, advertised)
        if host in _ALL_ADDRESSES:
            return address
        if is_loopback(host) and not self._runtime.blocking(self._is_here, address):
            raise KafkaError(f"it serves HTTP to its own machine only ({_HOST} is {host})")
        return host


def address_of(host: str) -> str:
    """Raises OSError."""
    return str(first_address(host)[1][0])


def page(runtime: Runtime, endpoint: Endpoint, path: str, timeout: float) -> bytes:
    """The body. Takes up to ``timeout`` seconds for the connection, for each piece of the answer,
    and twice that in all. Raises OSError, and KafkaError for an answer without the page."""
    deadline = runtime.clock.monotonic() + 2 * timeout
    host = _named(endpoint)
    with closing(runtime.connect(*endpoint, timeout)) as sock:
        # After HTTP/1.0 the answer comes in one piece, and the connection ends with it.
        sock.sendall(f"GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        answer = b"".join(_received(runtime, sock, deadline))
    head, _, body = answer.partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if not head.startswith(b"HTTP/") or len(words) < 2:
        raise KafkaError("it does not answer in HTTP")
    if words[1] != b"200":
        code = words[1].decode("ascii", "replace")[:3]
        text = _REASONS.get(words[1], f"it answers {code} over HTTP")
        raise KafkaError(text.format(path=path.partition("?")[0], host=endpoint[0]))
    return body


def _received(runtime: Runtime, sock: Socket, deadline: float) -> Iterator[bytes]:
    """Raises TimeoutError, and KafkaError for an answer without an end."""
    size = 0
    while piece := sock.recv(_PIECE):
        yield piece
        size += len(piece)
        if size > MOST_BYTES:
            raise KafkaError(f"its answer over HTTP is longer than {MOST_BYTES} bytes")
        if runtime.clock.monotonic() > deadline:
            raise TimeoutError("timed out")


def _named(endpoint: Endpoint) -> str:
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
