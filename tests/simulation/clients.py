"""A client that speaks the wire protocol and goes on through every fault.

An answer that is an error, or none, means to ask for the leader again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kafka08.common import TopicPartition
from kafka08.errors import KafkaError, ProtocolError
from kafka08.network.channel import Channel
from kafka08.protocol.schemas import MetadataRequest
from tests.simulation.keyed_ledger import KeyedLedger
from tests.simulation.ledger import Ledger
from tests.simulation.list_ledger import ListLedger
from tests.simulation.runtime import SimulatedRuntime
from tests.simulation.scheduler import SimulatedTask
from tests.simulation.sessions import SimulatedSessions

PORT = 9092
_PAUSE_SECONDS = 0.1
_METADATA_VERSION = 7
"""The first with leader epochs."""
_LEGACY_METADATA_VERSION = 0


class Seat(NamedTuple):
    """Where a client is: its process, the hosts of the brokers that have not left, ZooKeeper; the
    topic that all use, what they know of it, of the topic with keys, and of the lists of
    transactions. ``is_legacy``: it speaks as in 0.8. ``is_synced``: brokers answer when they have
    synced. ``committed``: the highest high watermark of any leader."""

    runtime: SimulatedRuntime
    hosts: Sequence[str]
    sessions: SimulatedSessions
    topic: str
    ledger: Ledger
    keyed: KeyedLedger
    lists: ListLedger
    is_legacy: bool
    is_synced: bool
    committed: Mapping[TopicPartition, int]


class WireClient:
    """Knows the leaders of a topic and their epochs, and has connections. ``stopping`` ends its
    loop, as soon as nothing ``is_open``. ``is_calm``: faults have ended.
    ``connections``: how many it has made to each host."""

    timeout_ms = 3_000
    """Of connecting, and of each wait for an answer."""
    refresh = 0.02
    """So often it asks for the leaders again although all is well."""

    def __init__(self, seat: Seat) -> None:
        self.stopping = False
        self.is_calm = False
        self.seat = seat
        self.topic = seat.topic
        self.ledger = seat.ledger
        self.runtime = seat.runtime
        self.rng = seat.runtime.scheduler.rng
        self.hosts = seat.hosts
        self.leaders: dict[int, str] = {}
        self.epochs: dict[int, int] = {}
        self._knows_all = False
        self._channels: dict[str, Channel] = {}
        self.connections: Counter[str] = Counter()
        self._calm: dict[str, bool] = {}
        self._task: SimulatedTask | None = None

    def start(self) -> None:
        self._task = self.runtime.spawn("loop", self.run)

    @property
    def has_stopped(self) -> bool:
        return self._task is not None and self._task.has_ended

    @property
    def is_open(self) -> bool:
        """Whether it has begun what it must end."""
        return False

    def check(self) -> None:
        """Asked when all clients have stopped, and consumers have seen everything. Raises
        AssertionError."""

    def note(self, what: str) -> None:
        """Put a line into the trace."""
        self.runtime.scheduler.note(what)

    def call(self, host: str, request: object, version: int | None = None) -> Any:
        """Raises OSError and ProtocolError, as Channel does; AssertionError if the request is not
        answered over a connection that was made after faults have ended."""
        if host not in self._channels:
            self._channels[host] = Channel(
                host,
                PORT,
                client_id=self.runtime.name,
                timeout_ms=self.timeout_ms,
                runtime=self.runtime,
            )
        channel = self._channels[host]
        if not channel.connected:
            self.connections[host] += 1
            self._calm[host] = self.is_calm
        try:
            return channel.call(request, version)
        except TimeoutError:
            is_due = self._calm[host] and host in self.hosts
            assert not is_due, f"{host} does not answer {request}"
            raise

    def any_host(self) -> str:
        return self.rng.choice(self.hosts)

    def any_partition(self) -> int:
        """Of those with a known leader."""
        return self.rng.choice(sorted(self.leaders))

    def _find_leaders(self) -> None:
        """Ask a broker. Raises as ``call``."""
        version = _LEGACY_METADATA_VERSION if self.seat.is_legacy else _METADATA_VERSION
        response = self.call(self.any_host(), MetadataRequest([self.topic]), version)
        hosts = {each.node_id: each.host for each in response.brokers}
        (topic,) = response.topics
        led = [each for each in topic.partitions if each.leader in hosts]
        self.leaders = {each.partition: hosts[each.leader] for each in led}
        self.epochs = {each.partition: each.leader_epoch for each in led}
        self._knows_all = 0 < len(self.leaders) == len(topic.partitions)

    def forget_leaders(self) -> None:
        self.leaders.clear()
        self._knows_all = False

    def failed(self, what: str, code: int) -> None:
        """An answer has this error."""
        self.note(f"{what}: error {code}")
        self.forget_leaders()

    def run(self) -> None:
        """Work until ``stopping``."""
        while not self.stopping or self.is_open:
            try:
                # Brokers that have just started may not know of all partitions.
                if not self._knows_all or self.rng.random() < self.refresh:
                    self._find_leaders()
                if self.leaders:
                    self.work()
            except (OSError, ProtocolError, KafkaError) as error:
                self.note(f"fails: {error!r}")
                self.forget_leaders()
            if not self.leaders:
                self.runtime.sleep(_PAUSE_SECONDS)
        self.disconnect()

    def disconnect(self) -> None:
        """Close all connections."""
        for channel in self._channels.values():
            channel.close()

    def work(self) -> None:
        """Some requests. Raises as ``call``."""
        raise NotImplementedError
