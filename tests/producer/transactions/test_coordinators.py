"""Requests to coordinators: where they go, what is tried again, and what is not."""

from __future__ import annotations

import pytest

from kafka08.client.cluster import GROUP, TRANSACTION, ClusterClient
from kafka08.common import Broker
from kafka08.errors import UnsupportedForMessageFormatError
from kafka08.producer.errors import (
    ProducerClosedError,
    ProducerFencedError,
    TopicAuthorizationError,
    UnsupportedVersionError,
    WaitTimeoutError,
)
from kafka08.producer.transactions.coordinators import Coordinators
from kafka08.protocol import schemas as s
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.negotiation import NotServedError, closed
from tests.fakes.cluster import FakeCluster
from tests.fakes.runtime import FakeRuntime

KEY = (TRANSACTION, "id")
END = t.EndTxnRequest("id", 7, 0, True)
BROKERS = [Broker(n, f"b{n}", 9090 + n) for n in range(2)]


class Scene:
    """Broker 1 coordinates everything. ``codes`` of the next answers to EndTxn."""

    def __init__(self, *codes: int) -> None:
        self.cluster = FakeCluster(BROKERS)
        self.cluster.script = self.answer
        self.runtime = FakeRuntime()
        self.codes = list(codes)
        self.coordinator = BROKERS[1]
        client = ClusterClient([("b0", 9090)], runtime=self.runtime, channel=self.cluster.channel)
        self.coordinators = Coordinators(client, self.runtime, 0.1)

    def answer(self, port: int, request: object) -> object:
        if isinstance(request, s.ConsumerMetadataRequest):
            return s.ConsumerMetadataResponse(0, *self.coordinator)
        if isinstance(request, t.EndTxnRequest):
            return t.EndTxnResponse(0, self.codes.pop(0) if self.codes else 0)
        return None

    def end(self, patience: float = 60.0) -> t.EndTxnResponse:
        return self.coordinators.call(KEY, END, patience)  # type: ignore[no-any-return]

    @property
    def lookups(self) -> list[s.ConsumerMetadataRequest]:
        return self.cluster.sent(s.ConsumerMetadataRequest)


def test_the_coordinator_is_looked_up_once() -> None:
    scene = Scene()
    assert scene.end().error == 0
    scene.end()
    assert scene.lookups == [s.ConsumerMetadataRequest("id", TRANSACTION)]
    assert scene.cluster.took(1) == [END, END]
    scene.coordinators.call((GROUP, "id"), END, 1)
    assert scene.lookups[1:] == [s.ConsumerMetadataRequest("id", GROUP)]


def test_one_that_has_moved_is_looked_up_again() -> None:
    scene = Scene(16)
    scene.coordinator = BROKERS[0]
    scene.end()
    scene.coordinator = BROKERS[1]
    scene.codes = [15]
    scene.end()
    assert len(scene.lookups) == 3
    scene.cluster.down = {9091}
    with pytest.raises(WaitTimeoutError, match=r"within 1 s.*port 9091"):
        scene.end(1)


def test_pauses() -> None:
    scene = Scene(51, 14, 51)
    scene.end()
    assert scene.runtime.slept == [0.02, 0.1, 0.02]


@pytest.mark.parametrize("code", [47, 90])
def test_both_codes_of_a_fenced_producer(code: int) -> None:
    with pytest.raises(ProducerFencedError, match=r"transactional\.id id"):
        Scene(code).end()


def test_errors_of_codes() -> None:
    with pytest.raises(UnsupportedForMessageFormatError):
        Scene(43).end()


def test_the_error_of_one_of_many_partitions() -> None:
    scene = Scene()
    errors = [(0, 55), (1, 29), (2, 3)]
    entries = [t.TxnPartitionError(*each) for each in errors]
    answer = t.AddPartitionsToTxnResponse(0, topics=[t.TxnTopicErrors("t", entries)])
    scene.cluster.script = lambda port, request: (
        answer if isinstance(request, t.AddPartitionsToTxnRequest) else scene.answer(port, request)
    )
    with pytest.raises(TopicAuthorizationError, match=r"\[t,1\]"):
        scene.coordinators.call(KEY, t.AddPartitionsToTxnRequest("id"), 1)


def test_brokers_that_do_not_say_their_versions() -> None:
    scene = Scene()
    scene.cluster.failures = [closed("b0:9090")]
    with pytest.raises(UnsupportedVersionError, match=r"api\.versions\.enable=false"):
        scene.end()
    assert scene.runtime.slept == []
    scene.end()
    scene.cluster.failures = [closed("b1:9091")]  # a coordinator that is being stopped
    scene.end()


def test_brokers_without_transactions() -> None:
    scene = Scene()
    scene.coordinators.call(KEY, END, 1)
    scene.cluster.failures = [NotServedError("The broker does not serve EndTxn")]
    with pytest.raises(UnsupportedVersionError, match="EndTxn"):
        scene.end()


def test_a_stop_ends_the_wait() -> None:
    scene = Scene(*[15] * 1000)
    scene.runtime.while_waiting = [scene.coordinators.stop]
    with pytest.raises(ProducerClosedError):
        scene.end()
