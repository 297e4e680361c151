"""A producer and a consumer that speak the wire protocol, and the ledger of what they know.

Both go on through every fault: an answer that is an error, or none, means to ask for the leader
again. They raise AssertionError as soon as they see what must never happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafka08.errors import KafkaError, ProtocolError
from kafka08.message.sets import encode_set, iter_messages
from kafka08.network.channel import Channel
from kafka08.protocol.schemas import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    MetadataRequest,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from tests.simulation.runtime import SimulatedRuntime

PORT = 9092
_PAUSE_SECONDS = 0.1
_TIMEOUT_MS = 3_000
_FETCH_BYTES = 4_000


class Place(NamedTuple):
    """Of a message."""

    partition: int
    offset: int


class Ledger:
    """What was acknowledged and what was seen, by place. ``sent``: how many values there were."""

    def __init__(self) -> None:
        self.acknowledged: dict[Place, bytes] = {}
        self.seen: dict[Place, bytes] = {}
        self.sent = 0

    def acknowledge(self, place: Place, value: bytes) -> None:
        other = self.acknowledged.setdefault(place, value)
        assert other == value, f"{place} was acknowledged for {other!r} and for {value!r}"
        self._agree(place)

    def see(self, place: Place, value: bytes) -> None:
        other = self.seen.setdefault(place, value)
        assert other == value, f"{place} was seen as {other!r} and is {value!r} now"
        self._agree(place)

    def _agree(self, place: Place) -> None:
        acknowledged, seen = self.acknowledged.get(place), self.seen.get(place)
        assert acknowledged is None or seen is None or acknowledged == seen, (
            f"{place} was acknowledged for {acknowledged!r} and is {seen!r}"
        )

    @property
    def lost(self) -> dict[Place, bytes]:
        """What was acknowledged and has not been seen."""
        return {each: value for each, value in self.acknowledged.items() if each not in self.seen}


class Client:
    """Knows leaders and has connections. ``stopping`` ends its loop."""

    def __init__(
        self, runtime: SimulatedRuntime, hosts: Sequence[str], topic: str, ledger: Ledger
    ) -> None:
        self.stopping = False
        self._runtime = runtime
        self._rng = runtime.scheduler.rng
        self._hosts = list(hosts)
        self._topic = topic
        self._ledger = ledger
        self._leaders: dict[int, str] = {}
        self._channels: dict[str, Channel] = {}

    def call(self, host: str, request: object) -> object:
        """Raises OSError and ProtocolError, as Channel does."""
        if host not in self._channels:
            self._channels[host] = Channel(
                host, PORT, client_id="client", timeout_ms=_TIMEOUT_MS, runtime=self._runtime
            )
        return self._channels[host].call(request)

    def _find_leaders(self) -> None:
        """Ask a broker. Raises as ``call``."""
        response = self.call(self._rng.choice(self._hosts), MetadataRequest([self._topic]))
        hosts = {each.node_id: each.host for each in response.brokers}  # type: ignore[attr-defined]
        (topic,) = response.topics  # type: ignore[attr-defined]
        self._leaders = {
            each.partition: hosts[each.leader] for each in topic.partitions if each.leader in hosts
        }

    def run(self) -> None:
        """Work until ``stopping``."""
        while not self.stopping:
            try:
                if self._leaders:
                    self.work()
                else:
                    self._find_leaders()
            except (OSError, ProtocolError, KafkaError) as error:
                self._runtime.scheduler.note(f"fails: {error!r}")
                self._leaders.clear()
            if not self._leaders:
                self._runtime.sleep(_PAUSE_SECONDS)
        for channel in self._channels.values():
            channel.close()

    def work(self) -> None:
        raise NotImplementedError


class Producer(Client):
    """Sends a few messages at a time, with acks -1."""

    def work(self) -> None:
        partition = self._rng.choice(sorted(self._leaders))
        values = [b"%d" % (self._ledger.sent + at) for at in range(self._rng.randint(1, 4))]
        self._ledger.sent += len(values)
        data = memoryview(bytearray(encode_set([(None, value) for value in values], 0, 0)))
        topic = ProduceTopic(self._topic, [ProducePartition(partition, data)])
        response = self.call(self._leaders[partition], ProduceRequest(-1, 1_000, [topic]))
        answer = response.topics[0].partitions[0]  # type: ignore[attr-defined]
        if answer.error:
            self._runtime.scheduler.note(f"partition {partition}: error {answer.error}")
            self._leaders.clear()
            return
        for at, value in enumerate(values):
            self._ledger.acknowledge(Place(partition, answer.base_offset + at), value)
        self._runtime.sleep(self._rng.randrange(50) / 1000)


class Consumer(Client):
    """Reads all partitions from their start, each from its leader. ``positions``: what it reads
    next; ``ends``: the high watermarks that it was told last."""

    def __init__(
        self, runtime: SimulatedRuntime, hosts: Sequence[str], topic: str, ledger: Ledger
    ) -> None:
        super().__init__(runtime, hosts, topic, ledger)
        self.positions: dict[int, int] = {}
        self.ends: dict[int, int] = {}

    def work(self) -> None:
        partition = self._rng.choice(sorted(self._leaders))
        position = self.positions.setdefault(partition, 0)
        asked = FetchTopic(self._topic, [FetchPartition(partition, position, _FETCH_BYTES)])
        response = self.call(self._leaders[partition], FetchRequest(-1, 100, 1, [asked]))
        answer = response.topics[0].partitions[0]  # type: ignore[attr-defined]
        if answer.error:
            self._runtime.scheduler.note(f"partition {partition}: error {answer.error}")
            self._leaders.clear()
            return
        self.ends[partition] = answer.high_watermark
        for message in iter_messages(bytes(answer.message_set)):
            if message.offset < position:
                continue
            assert message.offset == position, f"a gap from {position} to {message.offset}"
            assert position < answer.high_watermark, f"{position} is above the high watermark"
            self._ledger.see(Place(partition, position), message.value or b"")
            position += 1
        self.positions[partition] = position
