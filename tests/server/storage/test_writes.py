"""A produce under way: what its answers say to senders of several versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.common import OFFSETS_TOPIC, TopicPartition
from kafka08.errors import InvalidMessageError, InvalidRecordError, InvalidTopicError
from kafka08.protocol.schemas import ProduceRequest
from kafka08.server.storage.appends import Appends
from kafka08.server.storage.writes import Produce, ProducerVersions, TransactionGate
from tests.server.support import Rig, message_set

KEY = TopicPartition("t", 0)


def produce_of(rig: Rig, sender: ProducerVersions, acks: int = -1) -> Produce:
    appends = Appends(rig.runtime, rig.replicas, rig.view.long_work)
    request = ProduceRequest(acks, 1000, [])
    return Produce(rig.replicas, appends, rig.view, sender, TransactionGate(), {}, request)


@pytest.mark.parametrize(("acks", "required"), [(1, {}), (-1, {KEY: 2}), (0, {KEY: 2})])
def test_the_end_of_a_set_is_required(
    acks: int, required: dict[TopicPartition, int], tmp_path: Path
) -> None:
    rig = Rig(tmp_path)
    rig.lead()
    for sender, start in ((ProducerVersions(), 0), (ProducerVersions(reads_start=False), -1)):
        produce = produce_of(rig, sender, acks)
        answer = produce.append(KEY, memoryview(bytearray(message_set("a"))))
        assert (answer.error, answer.log_start_offset) == (0, start)
    assert produce.required == required
    assert not produce.failures


def test_a_sender_gets_a_code_that_it_knows(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.lead()
    for unknown, code in (
        ((), InvalidRecordError.code),
        ((InvalidRecordError,), InvalidMessageError.code),
    ):
        produce = produce_of(rig, ProducerVersions(unknown, one_batch=True))
        assert produce.append(KEY, memoryview(bytearray(message_set("a")))).error == code
        internal = produce.append(TopicPartition(OFFSETS_TOPIC, 0), memoryview(b""))
        assert internal.error == InvalidTopicError.code
        assert produce.required == {} and produce.failures
