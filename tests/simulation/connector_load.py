"""Members of a group in ZooKeeper: our own connector, which a task of the simulation uses."""

from __future__ import annotations

from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.consumer.stream import KafkaStream
from kafka08.errors import KafkaError
from kafka08.message.consumed import Message
from tests.simulation.clients import Seat, WireClient
from tests.simulation.ledger import MessagePlace, key_of

GROUP = "zk-group"
_SESSION_MS = 6_000
_SETTINGS = {
    "group.id": GROUP,
    "zookeeper.connect": "zookeeper:2181",
    "zookeeper.session.timeout.ms": str(_SESSION_MS),
    "auto.offset.reset": "smallest",
    "auto.commit.interval.ms": "1000",
    "consumer.timeout.ms": "500",
    "rebalance.backoff.ms": "500",
    "refresh.leader.backoff.ms": "100",
    "socket.timeout.ms": "3000",
    "fetch.wait.max.ms": "100",
}
_STORES = ("zookeeper", "kafka")
_AFTER_FAILURE_SECONDS = 0.5


class ConnectorMember(WireClient):
    """Joins, reads for some seconds, closes and joins again, with offsets in either store. The
    group may read a message again, and passes none over."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._joins = 0

    def run(self) -> None:
        while not self.stopping:
            try:
                self._belong()
            except (KafkaError, OSError) as error:
                self.note(f"fails: {error!r}")
                self.runtime.sleep(_AFTER_FAILURE_SECONDS)

    def _belong(self) -> None:
        self._joins += 1
        config = ConsumerConfig.from_properties(
            {
                **_SETTINGS,
                "consumer.id": f"{self.runtime.name}-{self._joins}",
                "offsets.storage": _STORES[self.runtime.scheduler.seed % 2],
            }
        )
        session = self.seat.sessions.connect(self.runtime, _SESSION_MS)
        until = self.runtime.clock.monotonic() + 20 * self.rng.random()
        with ConsumerConnector(config, runtime=self.runtime, zk=session) as connector:
            (stream,) = connector.create_message_streams({self.topic: 1})[self.topic]
            self.note("has joined")
            while not self.stopping and self.runtime.clock.monotonic() < until:
                self._read(stream)

    def _read(self, stream: KafkaStream) -> None:
        try:
            message = next(stream)
        except ConsumerTimeoutError:
            return
        self._judge(message)
        self.runtime.sleep(self.rng.randrange(3) / 1000)

    def _judge(self, message: Message) -> None:
        value = message.value
        assert isinstance(value, bytes) and message.key == key_of(value)
        self.ledger.see(MessagePlace(message.partition, message.offset), value)
        self.ledger.deliver(MessagePlace(message.partition, message.offset))
