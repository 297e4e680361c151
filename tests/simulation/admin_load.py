"""A client that changes topics while others use them: their partitions, replicas, leaders, settings
and first offsets; and topics of its own, which it makes and deletes again and again."""

from __future__ import annotations

from collections.abc import Callable

from kafka08 import admin
from kafka08.common import TopicPartition
from kafka08.errors import NO_ERROR
from kafka08.message.sets import encode_set
from kafka08.protocol.admin_schemas import (
    SET_CONFIG,
    TOPIC_RESOURCE,
    ChangedResource,
    ConfigChange,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ElectTopic,
    IncrementalAlterConfigsRequest,
    MorePartitions,
    NewTopic,
)
from kafka08.protocol.schemas import (
    MetadataRequest,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
)
from tests.simulation.clients import Seat, WireClient
from tests.simulation.ledger import key_of
from zk.client import ZkClient
from zk.errors import ZkError

RETURNING, RENEWED = "made1", "made2"
"""The topics that come and go: one under its own name, one under a new name each time."""
_MOST_PARTITIONS = 4
_WAIT_MS = 1_000
_METADATA_VERSION = 7
_CREATION, _LEGACY_CREATION = 4, 1
"""The last versions of CreateTopics."""
_SETTINGS = (
    ("segment.bytes", ("1000", "2000", "4000")),
    ("min.insync.replicas", ("1", "2")),
    ("flush.messages", ("1", "1000")),
)


class Admin(WireClient):
    """One change after the other, each through any broker or ZooKeeper."""

    timeout_ms = 10_000

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._session: ZkClient | None = None
        self._renewals = 0
        self._acts: tuple[Callable[[], None], ...] = (
            self._create,
            self._create,
            self._fill,
            self._fill,
            self._delete,
            self._grow,
            self._delete_records,
            self._elect,
            self._move,
            self._move,
            self._configure,
        )
        if seat.is_legacy:
            self._acts = self._create, self._delete, self._grow, self._move, self._move
        self._last_creation = _LEGACY_CREATION if seat.is_legacy else _CREATION

    @property
    def _brokers(self) -> list[int]:
        return [int(host.removeprefix("broker")) for host in self.hosts]

    def work(self) -> None:
        self.runtime.sleep(2 * self.rng.random())
        act = self.rng.choice(self._acts)
        self.note(act.__name__)
        try:
            act()
        except ZkError as error:
            self.note(f"fails: {error!r}")
            self._end_session()

    def disconnect(self) -> None:
        super().disconnect()
        self._end_session()

    def _end_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _zookeeper(self) -> ZkClient:
        if self._session is None:
            self._session = self.seat.sessions.connect(self.runtime)
        return self._session

    # Topics of its own

    def _made(self) -> str:
        name = self.rng.choice((RETURNING, RENEWED))
        return f"{RENEWED}-{self._renewals}" if name == RENEWED else name

    def _create(self) -> None:
        factor = min(2, len(self.hosts))
        topic = NewTopic(self._made(), self.rng.randint(1, 2), factor, [], [])
        version = self.rng.randint(0, self._last_creation)
        self.call(self.any_host(), CreateTopicsRequest([topic], _WAIT_MS), version)

    def _delete(self) -> None:
        topic = self._made()
        answer = self.call(self.any_host(), DeleteTopicsRequest([topic], _WAIT_MS), 0)
        if topic != RETURNING and answer.topics[0].error == NO_ERROR:
            self._renewals += 1

    def _fill(self) -> None:
        """Produce to a topic, if it exists."""
        topic = self._made()
        asked = MetadataRequest([topic], allow_auto_topic_creation=False)
        response = self.call(self.any_host(), asked, _METADATA_VERSION)
        hosts = {each.node_id: each.host for each in response.brokers}
        for part in response.topics[0].partitions:
            if part.leader in hosts:
                values = [b"%d" % self.rng.getrandbits(30) for _ in range(10)]
                data = memoryview(bytearray(encode_set([(key_of(x), x) for x in values])))
                sent = [ProduceTopic(topic, [ProducePartition(part.partition, data)])]
                self.call(hosts[part.leader], ProduceRequest(-1, _WAIT_MS, sent), 0)

    # The topic of all

    def _grow(self) -> None:
        """One more partition."""
        more = MorePartitions(self.topic, len(self.leaders) + 1, None)
        if len(self.leaders) < _MOST_PARTITIONS:
            self.call(self.any_host(), CreatePartitionsRequest([more], _WAIT_MS, False), 0)

    def _delete_records(self) -> None:
        """Up to an offset that has been read."""
        if not self.ledger.seen:
            return
        partition, offset = self.rng.choice(list(self.ledger.seen))
        if partition not in self.leaders:
            return
        until = self.ledger.deleted_until
        until[partition] = max(until[partition], offset)
        part = DeleteRecordsPartition(partition, offset)
        request = DeleteRecordsRequest([DeleteRecordsTopic(self.topic, [part])], _WAIT_MS)
        answer = self.call(self.leaders[partition], request, 0).topics[0].partitions[0]
        if answer.error == NO_ERROR:
            starts = self.ledger.starts
            starts[partition] = max(starts[partition], offset)
        else:
            self.failed(f"partition {partition}", answer.error)

    def _elect(self) -> None:
        """The preferred leader of a partition."""
        part = ElectTopic(self.topic, [self.any_partition()])
        self.call(self.any_host(), ElectLeadersRequest([part], _WAIT_MS, 0), 0)

    def _move(self) -> None:
        """Other replicas for a partition, or others first."""
        least = min(2, len(self.hosts))
        count = self.rng.randint(least, len(self.hosts))
        replicas = self.rng.sample(self._brokers, count)
        moved = TopicPartition(self.topic, self.any_partition())
        admin.start_reassignment(self._zookeeper(), {moved: replicas})

    def _configure(self) -> None:
        name, values = self.rng.choice(_SETTINGS)
        value = self.rng.choice(values)
        if name == "min.insync.replicas" and len(self.hosts) == 1:
            return
        if name == "flush.messages" and self.seat.is_synced:
            return
        change = ConfigChange(name, SET_CONFIG, value)
        resource = ChangedResource(TOPIC_RESOURCE, self.topic, [change])
        self.call(self.any_host(), IncrementalAlterConfigsRequest([resource], False), 0)


class TopicAdmin(Admin):
    """Makes topics of its own and deletes them, and leaves all others as they are."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._acts = self._create, self._delete
