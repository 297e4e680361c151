"""Producers and consumers at their quotas: answered at once, and read from after a pause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from greenlet import gettrace

from kafka08.errors import ProtocolError
from kafka08.network.peer import Peer, current_peer
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.later_schemas import InitProducerIdRequest
from kafka08.protocol.schemas import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    MetadataRequest,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
    RequestHeader,
)
from kafka08.security.limits import DEFAULT, Entity
from kafka08.server.quotas.throttle import LONGEST_SECONDS, MOST_SECONDS, Throttle
from kafka08.server.requests.dispatch import Dispatcher, Handler
from kafka08.server.requests.long_work import MANY_BYTES
from tests.server.support import Rig, message_set, partition_state

CLIENT = Entity(client="tests")  # the id of the rig's requests
OVERHEAD = 300


class Busy:
    """A handler that also takes the loop's time."""

    def __init__(self, handler: Handler, held: Held) -> None:
        self.key, self.last_version = handler.key, handler.last_version
        self.failure = handler.failure
        self._handler = handler
        self._held = held

    def handle(self, header: RequestHeader, request: Any) -> Any:
        self._held.rig.clock.advance(self._held.work_seconds)
        return self._handler.handle(header, request)


class Held:
    """A client of a broker with quotas, which is read from again once its pauses are over."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.work_seconds = 0.0  # for each request
        self.peer = Peer("127.0.0.1:5000", "User:alice")
        self.throttle = Throttle(rig.clock)
        rig.dispatcher = Dispatcher(
            rig.runtime,  # type: ignore[arg-type]
            [Busy(handler, self) for handler in rig.handlers],
            rig.apis,
            self.throttle,
        )
        rig.know(partition_state("t"))
        rig.lead("t")

    def pause(self) -> float:
        """Let the pause that the last request caused pass; its seconds."""
        seconds, self.peer.mute_seconds = self.peer.mute_seconds, 0.0
        self.rig.clock.advance(seconds)
        return seconds

    def share(self, percentage: float | None, entity: Entity = CLIENT) -> None:
        self.throttle.set_rates(entity, None, None, percentage)

    def ask(self, version: int = 0) -> int:
        """A request for metadata; its throttle time."""
        answer = self.rig.call(MetadataRequest(["t"]), sent_in=version)
        return int(getattr(answer, "throttle_time_ms", 0))

    def produce(
        self, size: int, *, acks: int = 1, timeout_ms: int = 1000, version: int | None = None
    ) -> int:
        """A request of about that size; its throttle time."""
        data = memoryview(message_set("x" * (size - 60)))
        request = ProduceRequest(acks, timeout_ms, [ProduceTopic("t", [ProducePartition(0, data)])])
        answer = self.rig.call(request, sent_in=version)
        assert (answer is None) is (acks == 0)
        return 0 if answer is None else int(getattr(answer, "throttle_time_ms", 0))

    def fetch(self, replica_id: int = -1) -> int:
        """The bytes of messages from the beginning."""
        asked = ("t", 0, 0, 1 << 20)
        found = self.rig.fetch(asked, replica_id=replica_id, max_wait_ms=1000)
        error, high_watermark, data = found["t", 0][:3]
        assert error == 0
        assert high_watermark > 0 or replica_id >= 0
        return len(data)


@pytest.fixture
def held(rig: Rig) -> Iterator[Held]:
    yield from sent_by_alice(Held(rig))


@pytest.fixture
def later(make_rig: Callable[..., Rig]) -> Iterator[Held]:
    yield from sent_by_alice(Held(make_rig(later=True)))


def sent_by_alice(held: Held) -> Iterator[Held]:
    token = current_peer.set(held.peer)
    yield held
    current_peer.reset(token)
    for entity in (CLIENT, Entity("alice"), Entity("bob")):
        held.share(None, entity)
    assert gettrace() is None


def test_without_quotas_nothing_is_counted(held: Held) -> None:
    assert not held.throttle.is_on
    held.produce(100_000)
    held.fetch()
    assert len(held.throttle.producers.sensors) == len(held.throttle.consumers.sensors) == 0
    assert held.pause() == 0


@pytest.mark.scenario("security-44")
def test_44_a_producer_of_0_8_keeps_its_rate(held: Held) -> None:
    held.throttle.set_rates(CLIENT, 1000, None)
    for _ in range(6):
        held.produce(2000)
    assert held.pause() > 0
    began, sent = held.rig.clock.now, 0
    while held.rig.clock.now - began < 20:
        held.produce(2000)
        sent += 2000
        assert held.pause() == pytest.approx(2, rel=0.05)
    assert sent / (held.rig.clock.now - began) == pytest.approx(1000, rel=0.1)


@pytest.mark.scenario("security-44")
def test_44_no_pause_is_longer_than_clients_wait_and_the_rest_is_owed(held: Held) -> None:
    held.throttle.set_rates(CLIENT, 1000, None)
    began = held.rig.clock.now
    held.produce(30_000)
    pauses = [held.pause()]
    for _ in range(4):
        held.produce(100)
        pauses.append(held.pause())
    assert pauses[:4] == [MOST_SECONDS] * 4
    assert held.rig.clock.now - began == pytest.approx(20, rel=0.04)


@pytest.mark.scenario("security-44")
def test_44_a_producer_that_waits_for_long_keeps_its_rate_with_large_requests(held: Held) -> None:
    """20 kB at 1000 B/s: pauses of 20 seconds, for a producer that waits for two minutes."""
    held.throttle.set_rates(CLIENT, 1000, None)
    held.produce(20_000, timeout_ms=120_000)
    assert held.pause() == pytest.approx(10, rel=0.05)  # half of it had been saved
    began, sent = held.rig.clock.now, 0
    while held.rig.clock.now - began < 200:
        held.produce(20_000, timeout_ms=120_000)
        sent += 20_000
        assert held.pause() == pytest.approx(20, rel=0.05)
    assert sent / (held.rig.clock.now - began) == pytest.approx(1000, rel=0.1)


def test_a_producer_cannot_ask_for_a_pause_without_end(held: Held) -> None:
    held.throttle.set_rates(CLIENT, 1000, None)
    held.produce(90_000, timeout_ms=2**31 - 1)
    assert held.pause() == LONGEST_SECONDS
    held.produce(100, timeout_ms=-1)
    assert held.pause() == MOST_SECONDS


@pytest.mark.scenario("security-44")
def test_44_later_versions_are_told_the_pause(later: Held) -> None:
    later.throttle.set_rates(CLIENT, 1000, 1000)
    assert later.produce(12_000, version=1) == pytest.approx(2000, rel=0.1)
    assert later.pause() == pytest.approx(2, rel=0.1)
    data = memoryview(message_set("x" * 12_000))
    later.throttle.set_rates(CLIENT, None, 1000)
    later.produce(len(data))
    request = FetchRequest(-1, 0, 0, [FetchTopic("t", [FetchPartition(0, 0, 1 << 20)])])
    answer = later.rig.call(request, sent_in=1)
    assert answer.throttle_time_ms == MOST_SECONDS * 1000
    assert later.pause() == MOST_SECONDS


@pytest.mark.scenario("security-45")
def test_45_a_producer_without_answers_is_muted(held: Held) -> None:
    held.throttle.set_rates(CLIENT, 1000, None)
    held.produce(15_000, acks=0)
    assert held.pause() == pytest.approx(5, rel=0.05)


@pytest.mark.scenario("security-46")
def test_46_a_consumer_gets_its_rate_and_one_answer_more(held: Held) -> None:
    held.produce(30_000)
    held.throttle.set_rates(CLIENT, None, 1000)
    began, got, answers = held.rig.clock.now, 0, 0
    while held.rig.clock.now - began < 600:
        got += held.fetch()
        answers += 1
        assert 0 < held.pause() <= MOST_SECONDS
        assert held.rig.runtime.slept == []  # not held back while it owes
    spent = held.rig.clock.now - began
    assert got == pytest.approx(1000 * spent, rel=0.1)
    assert got <= 1000 * (spent + 10) + 30_000 + OVERHEAD
    assert answers > got / 30_000  # some were without messages


@pytest.mark.scenario("security-46")
def test_46_others_are_not_held(held: Held) -> None:
    held.throttle.set_rates(Entity("bob"), 1, 1)
    held.throttle.set_rates(Entity(client="another"), 1, 1)
    held.produce(100_000)
    assert held.fetch() > 90_000
    assert held.pause() == 0


@pytest.mark.scenario("security-48")
def test_48_a_quota_counts_from_the_next_request_on(held: Held) -> None:
    held.produce(50_000)
    assert held.pause() == 0
    held.throttle.set_rates(Entity(DEFAULT, DEFAULT), 1000, None)
    held.produce(12_000)
    assert held.pause() == pytest.approx(2, rel=0.05)
    held.throttle.set_rates(Entity("alice"), 10_000, None)
    held.produce(50_000)
    assert held.pause() == 0
    held.throttle.set_rates(Entity("alice"), None, None)
    held.throttle.set_rates(Entity(DEFAULT, DEFAULT), None, None)
    assert not held.throttle.is_on
    held.produce(50_000)
    assert held.pause() == 0


@pytest.mark.scenario("security-52")
def test_52_replicas_and_controllers_are_not_held(held: Held) -> None:
    held.rig.lead("t", replicas=[1, 2])
    held.produce(30_000)
    held.throttle.set_rates(Entity(client=DEFAULT), 1, 1)
    held.produce(1000)
    assert held.pause() == MOST_SECONDS
    assert held.fetch(replica_id=2) > 29_000
    assert held.pause() == 0
    held.rig.lead("u")
    assert held.pause() == 0
    assert len(held.throttle.consumers.sensors) == 0


def test_long_requests_are_counted_too(held: Held) -> None:
    held.produce(500)
    held.throttle.set_rates(CLIENT, None, 1)
    asked = [FetchPartition(0, 0, 1000)] * (MANY_BYTES // 16 + 1)
    held.rig.call(FetchRequest(-1, 0, 0, [FetchTopic("t", asked)]))
    assert held.pause() > 0


def test_the_defaults_of_the_settings_hold_for_each_client_id(rig: Rig) -> None:
    throttle = Throttle(rig.clock, 1000, 2000, 5)
    assert throttle.is_on
    assert throttle.producers.use("alice", "c", 6000) == 1
    assert throttle.consumers.use("alice", "c", 12_000) == 1


def test_without_a_share_the_loop_is_not_watched(held: Held) -> None:
    held.work_seconds = 100
    held.throttle.set_rates(CLIENT, 1_000_000, 1_000_000)
    held.ask()
    assert held.pause() == 0
    assert held.throttle.timer is None
    assert gettrace() is None
    assert len(held.throttle.times.sensors) == 0


@pytest.mark.scenario("security-48")
def test_a_share_of_the_loops_time_holds_in_the_mean(held: Held) -> None:
    """10 percent, of which ten seconds' worth is saved; each request takes 50 ms."""
    held.share(10)
    held.work_seconds = 0.05
    began, asked = held.rig.clock.now, 0
    while held.rig.clock.now - began < 100:
        held.ask()
        asked += 1
        assert 0 <= held.pause() <= 1
    assert asked * 0.05 == pytest.approx(0.1 * (held.rig.clock.now - began) + 1, rel=0.01)


def test_100_percent_is_all_that_the_loop_can_do(held: Held) -> None:
    held.share(100)
    held.work_seconds = 3
    for _ in range(20):
        held.ask()
        assert held.pause() == 0
    held.share(50)
    for _ in range(4):  # of the first three, half was saved
        held.ask()
    assert held.pause() > 0


def test_a_pause_for_time_is_a_window_at_most_and_the_rest_is_owed(held: Held) -> None:
    held.share(10)
    held.work_seconds = 1.5  # 1 s was saved; half a second is owed, which takes 5
    held.ask()
    held.work_seconds = 0
    pauses = [held.pause()]
    for _ in range(5):
        held.ask()
        pauses.append(held.pause())
    assert pauses == pytest.approx([1, 1, 1, 1, 1, 0], abs=0.01)


def test_time_is_counted_for_produce_and_fetch_beside_their_bytes(held: Held) -> None:
    held.throttle.set_rates(CLIENT, 1000, 1_000_000, 50)
    held.work_seconds = 5.25  # 5 were saved
    held.produce(12_000)  # 2 seconds too much, and 0.5 of time
    assert held.pause() == pytest.approx(2, rel=0.1)
    held.work_seconds = 2
    assert held.fetch() > 11_000
    assert held.pause() == pytest.approx(0.5, rel=0.1)
    held.produce(100, acks=0)
    assert held.pause() == 1


OF_TRANSACTIONS = [
    InitProducerIdRequest("id", 1000),
    t.AddPartitionsToTxnRequest("id", 1, 0, [t.TxnTopic("t", [0])]),
    t.AddOffsetsToTxnRequest("id", 1, 0, "g"),
    t.EndTxnRequest("id", 1, 0, committed=True),
    t.TxnOffsetCommitRequest("id", "g", 1, 0, []),
    t.DescribeProducersRequest([]),
    t.DescribeTransactionsRequest([]),
    t.ListTransactionsRequest([], []),
]


@pytest.mark.parametrize("request_", OF_TRANSACTIONS, ids=lambda each: type(each).__name__)
def test_time_for_transactions_is_counted(later: Held, request_: Any) -> None:
    later.share(10)
    later.work_seconds = 1.5
    assert later.rig.call(request_, sent_in=0).throttle_time_ms == 1000
    assert later.pause() == 1


@pytest.mark.scenario("security-52")
def test_time_of_brokers_is_not_counted(held: Held) -> None:
    held.share(1)
    held.rig.lead("t", replicas=[1, 2])
    held.work_seconds = 100
    held.fetch(replica_id=2)
    held.rig.lead("u")
    assert held.pause() == 0
    assert len(held.throttle.times.sensors) == 0


def test_time_for_markers_of_transactions_is_not_counted(later: Held) -> None:
    """Brokers send them."""
    later.share(1)
    later.work_seconds = 100
    marker = t.TxnMarker(1, 0, True, [t.MarkedTopic("t", [0])], 0)
    answer = later.rig.call(t.WriteTxnMarkersRequest([marker]), sent_in=0)
    assert answer.markers[0].topics[0].partitions[0].error == 0
    assert later.pause() == 0
    assert len(later.throttle.times.sensors) == 0


def test_later_versions_are_told_the_pause_for_time(later: Held) -> None:
    later.share(10)
    later.work_seconds = 1.05
    assert later.ask(version=3) == pytest.approx(500, rel=0.01)
    assert later.pause() == pytest.approx(0.5, rel=0.01)
    assert later.ask(version=1) == 0  # its layout has no place for it
    assert later.pause() == 1


def test_a_user_may_have_a_share(held: Held) -> None:
    held.share(10, Entity("bob"))
    held.work_seconds = 2
    held.ask()
    assert held.pause() == 0
    held.share(10, Entity("alice"))
    held.ask()
    assert held.pause() == 1


def test_requests_that_fail_leave_nothing(held: Held) -> None:
    held.share(10)
    for frame in (b"", b"\0\x63" + bytes(20), b"\0\3" + bytes(4)):
        with pytest.raises(ProtocolError):
            held.rig.send(frame)
    assert held.throttle.timer is not None
    assert not held.throttle.timer.worked
