"""Damaged requests of transactional producers and about them, as ``test_fuzz``. Between them a good
producer commits a transaction, and another one is left to the damaged requests with its open one.

The good one writes to a topic of its own: a marker, which brokers send, may have any producer's id,
and ends its transaction. Ids that nobody uses are soon forgotten here, so that memory shows what is
kept for no reason.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka08.message.batch import TRANSACTIONAL
from kafka08.message.record_sets import Sender, encode_records
from kafka08.protocol import schemas as s
from kafka08.protocol import transaction_schemas as t
from kafka08.protocol.later_schemas import InitProducerIdRequest
from kafka08.protocol.registry import Apis
from tests.live.broker import LiveBroker
from tests.live.test_fuzz import APART, CHECK, FUZZ, Fuzz, Sent, harm_nobody
from tests.live.test_fuzz_later import in_every_version, of_transactions, served

FRAMES = int(os.environ.get("KAFKA08_FUZZ_FRAMES", 20_000))
GOLDEN = Path(__file__).parents[1] / "golden" / "transactions-vectors.json"
PRODUCE, FETCH, OFFSETS, FIND_COORDINATOR = 0, 1, 2, 10
KEYS = {PRODUCE, FETCH, OFFSETS, FIND_COORDINATOR, 22, 24, 25, 26, 27, 28, 61, 65, 66}
GOOD = "good"
FORGOTTEN_MS = 60_000  # longer than a good transaction takes on a busy machine
VERSIONS = {PRODUCE: 8, 22: 4, 24: 3, 26: 3}


def golden(apis: Apis) -> list[bytes]:
    frames = json.loads(GOLDEN.read_text(encoding="utf-8"))["frames"]
    return [
        bytes.fromhex(each["request"])
        for each in frames
        if each["key"] in KEYS & apis.keys() and each["version"] in apis[each["key"]].versions
    ]


def written(producer_id: int, epoch: int, id_: str, sequence: int, topic: str = FUZZ) -> Any:
    """The request that writes a batch of a transaction."""
    sender = Sender(producer_id, epoch, sequence, TRANSACTIONAL)
    now = round(1000 * time.time())
    data = encode_records([b"value"], None, [now], None, sender=sender)
    part = s.ProducePartition(0, memoryview(bytearray(data)))
    return s.ProduceRequest(-1, 1, [s.ProduceTopic(topic, [part])], id_)


class TransactionFuzz(Fuzz):
    """The bodies that are damaged are those of a producer whose transaction is open."""

    def __init__(self, broker: LiveBroker, apis: Apis) -> None:
        self._golden = golden(apis)
        self._committed = 0
        super().__init__(broker, self._golden, apis, FRAMES)

    def classify(self, body: bytes) -> Sent | None:
        if int.from_bytes(body[:2], "big") not in KEYS:
            return None
        return super().classify(body)

    def restore(self) -> None:
        """Nothing here speaks as a controller. A good transaction, and a new one to be damaged."""
        id_, epoch = self._begin(GOOD)
        self._commit(id_, epoch)
        name = f"victim-{self._committed}"
        id_, epoch = self._begin(name)
        self._call(24, t.AddPartitionsToTxnRequest(name, id_, epoch, [t.TxnTopic(FUZZ, [0])]))
        asked = [s.OffsetsTopic(FUZZ, [s.OffsetsPartition(0, -1)])]
        fetched = [s.FetchTopic(FUZZ, [s.FetchPartition(0, 0, 2000)])]
        requests = [
            *of_transactions(name, id_, epoch),
            *(written(id_, epoch, name, sequence) for sequence in range(3)),
            s.FetchRequest(-1, 1, 1, fetched, isolation_level=1),
            s.OffsetsRequest(-1, asked, isolation_level=1),
            s.ConsumerMetadataRequest(name, 1),
        ]
        self.bases = in_every_version(self.apis, requests) * 2 + self._golden

    def _call(self, key: int, request: Any) -> Any:
        return self.broker.client.call(request, VERSIONS[key])

    def _begin(self, id_: str) -> tuple[int, int]:
        found: list[Any] = []

        def has_begun() -> bool:
            found.append(self._call(22, InitProducerIdRequest(id_, FORGOTTEN_MS)))
            return bool(found[-1].error == 0)

        self.broker.until(has_begun)
        return found[-1].producer_id, found[-1].producer_epoch

    def _commit(self, producer_id: int, epoch: int) -> None:
        topics = [t.TxnTopic(APART, [0])]
        added = self._call(24, t.AddPartitionsToTxnRequest(GOOD, producer_id, epoch, topics))
        assert added.topics[0].partitions[0].error == 0
        answer = self._call(PRODUCE, written(producer_id, epoch, GOOD, 0, APART))
        assert answer.topics[0].partitions[0].error == 0
        ended = self._call(26, t.EndTxnRequest(GOOD, producer_id, epoch, committed=True))
        assert ended.error == 0
        self._committed += 1


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[LiveBroker]:
    broker = LiveBroker(
        tmp_path / "broker",
        api_versions_enable="true",
        auto_create_topics_enable="false",
        message_max_bytes=100_000,
        socket_request_max_bytes=1 << 20,
        log_segment_bytes=20_000,
        transaction_state_log_num_partitions=2,
        transaction_state_log_replication_factor=1,
        transaction_abort_timed_out_transaction_cleanup_interval_ms=200,
        transaction_remove_expired_transaction_cleanup_interval_ms=500,
        transactional_id_expiration_ms=FORGOTTEN_MS,
        producer_id_expiration_ms=FORGOTTEN_MS,
        group_min_session_timeout_ms=1,
    )
    yield broker
    broker.kill()


@pytest.mark.scenario("transactions-55")
def test_damaged_requests_of_transactions_harm_nobody(broker: LiveBroker, tmp_path: Path) -> None:
    broker.create_topic(FUZZ, 2)
    broker.create_topic(CHECK)
    broker.create_topic(APART)
    broker.create_offsets_topic()
    apis = served(broker)

    def has_coordinator() -> bool:
        return all(
            broker.client.call(s.ConsumerMetadataRequest(id_, 1), 1).error == 0 for id_ in "ab"
        )

    broker.until(has_coordinator)
    fuzz = TransactionFuzz(broker, apis)
    harm_nobody(fuzz, tmp_path, {apis[key].response.__name__ for key in KEYS})
