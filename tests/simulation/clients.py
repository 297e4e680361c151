"""A producer and a consumer that speak the wire protocol, and the ledger of what they know.

Both go on through every fault: an answer that is an error, or none, means to ask for the leader
again. They raise AssertionError as soon as they see what must never happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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
from tests.simulation.scheduler import SimulatedTask

PORT = 9092
_PAUSE_SECONDS = 0.1
_TIMEOUT_MS = 3_000
_FETCH_BYTES = 4_000
_REFRESH = 0.02


class MessagePlace(NamedTuple):
    """Of a message."""

    partition: int
    offset: int


class Ledger:
    """The acknowledged and the seen values, by place. ``sent``: how many values there were."""

    def __init__(self) -> None:
        self.acknowledged: dict[MessagePlace, bytes] = {}
        self.seen: dict[MessagePlace, bytes] = {}
        self.sent = 0

    def acknowledge(self, place: MessagePlace, value: bytes) -> None:
        other = self.acknowledged.setdefault(place, value)
        assert other == value, f"{place} was acknowledged for {other!r} and for {value!r}"
        self._agree(place)

    def see(self, place: MessagePlace, value: bytes) -> None:
        other = self.seen.setdefault(place, value)
        assert other == value, f"{place} was seen as {other!r} and is {value!r} now"
        self._agree(place)

    def _agree(self, place: MessagePlace) -> None:
        acknowledged, seen = self.acknowledged.get(place), self.seen.get(place)
        assert acknowledged is None or seen is None or acknowledged == seen, (
            f"{place} was acknowledged for {acknowledged!r} and is {seen!r}"
        )

    @property
    def lost(self) -> dict[MessagePlace, bytes]:
        """The acknowledged values that have not been seen."""
        return {each: value for each, value in self.acknowledged.items() if each not in self.seen}


class WireClient:
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
        self._knows_all = False
        self._channels: dict[str, Channel] = {}
        self._task: SimulatedTask | None = None

    def start(self) -> None:
        self._task = self._runtime.spawn("loop", self.run)

    @property
    def has_stopped(self) -> bool:
        return self._task is not None and self._task.has_ended

    def call(self, host: str, request: object) -> Any:
        """Raises OSError and ProtocolError, as Channel does."""
        if host not in self._channels:
            self._channels[host] = Channel(
                host, PORT, client_id="client", timeout_ms=_TIMEOUT_MS, runtime=self._runtime
            )
        return self._channels[host].call(request)

    def _find_leaders(self) -> None:
        """Ask a broker. Raises as ``call``."""
        response = self.call(self._rng.choice(self._hosts), MetadataRequest([self._topic]))
        hosts = {each.node_id: each.host for each in response.brokers}
        (topic,) = response.topics
        self._leaders = {
            each.partition: hosts[each.leader] for each in topic.partitions if each.leader in hosts
        }
        self._knows_all = 0 < len(self._leaders) == len(topic.partitions)

    def _forget_leaders(self) -> None:
        self._leaders.clear()
        self._knows_all = False

    def run(self) -> None:
        """Work until ``stopping``."""
        while not self.stopping:
            try:
                # Brokers that have just started may not know of all partitions.
                if not self._knows_all or self._rng.random() < _REFRESH:
                    self._find_leaders()
                if self._leaders:
                    self.work()
            except (OSError, ProtocolError, KafkaError) as error:
                self._runtime.scheduler.note(f"fails: {error!r}")
                self._forget_leaders()
            if not self._leaders:
                self._runtime.sleep(_PAUSE_SECONDS)
        for channel in self._channels.values():
            channel.close()

    def work(self) -> None:
        raise NotImplementedError


class WireProducer(WireClient):
    """Sends a few messages at a time, with acks -1."""

    def work(self) -> None:
        partition = self._rng.choice(sorted(self._leaders))
        values = [b"%d" % (self._ledger.sent + at) for at in range(self._rng.randint(1, 4))]
        self._ledger.sent += len(values)
        data = memoryview(bytearray(encode_set([(None, value) for value in values], 0, 0)))
        topic = ProduceTopic(self._topic, [ProducePartition(partition, data)])
        response = self.call(self._leaders[partition], ProduceRequest(-1, 1_000, [topic]))
        answer = response.topics[0].partitions[0]
        if answer.error:
            self._runtime.scheduler.note(f"partition {partition}: error {answer.error}")
            self._forget_leaders()
            return
        for at, value in enumerate(values):
            self._ledger.acknowledge(MessagePlace(partition, answer.base_offset + at), value)
        self._runtime.sleep(self._rng.randrange(50) / 1000)


class WireConsumer(WireClient):
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
        answer = response.topics[0].partitions[0]
        if answer.error:
            self._runtime.scheduler.note(f"partition {partition}: error {answer.error}")
            self._forget_leaders()
            return
        self.ends[partition] = answer.high_watermark
        for message in iter_messages(bytes(answer.message_set)):
            if message.offset < position:
                continue
            assert message.offset == position, f"a gap from {position} to {message.offset}"
            assert position < answer.high_watermark, f"{position} is above the high watermark"
            self._ledger.see(MessagePlace(partition, position), message.value or b"")
            position += 1
        self.positions[partition] = position
