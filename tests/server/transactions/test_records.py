"""Records of __transaction_state, byte for byte those of Kafka 3.9.1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka08.common import TopicPartition
from kafka08.errors import ProtocolError
from kafka08.message.entry import TimedMessage
from kafka08.message.sets import iter_messages
from kafka08.server.transactions.records import (
    Transaction,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from kafka08.server.transactions.states import PREDECESSORS, TransactionState

GOLDEN = Path(__file__).parents[2] / "golden" / "transactions-vectors.json"
STORED: list[TimedMessage] = [
    message
    for name, batches in json.loads(GOLDEN.read_text())["disk"].items()
    if name.startswith("__transaction_state")
    for batch in batches
    for message in iter_messages(bytes.fromhex(batch["hex"]))
]


@pytest.mark.parametrize("stored", STORED)
def test_records_are_those_of_kafka(stored: TimedMessage) -> None:
    assert stored.key is not None and stored.value is not None
    found = decode_value(decode_key(stored.key), stored.value)
    assert encode_key(found.id) == stored.key
    written = encode_value(found)
    assert decode_value(found.id, written) == found and len(written) == len(stored.value)
    if len({key.topic for key in found.partitions}) < 2:  # otherwise Kafka has no order
        assert written == stored.value


def test_the_stored_states() -> None:
    found = [decode_value("", stored.value or b"").state.value for stored in STORED]
    assert set(found) == {
        "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"
    }  # fmt: skip


@pytest.mark.parametrize("state", PREDECESSORS)
def test_what_is_written_is_read(state: TransactionState) -> None:
    partitions = frozenset({TopicPartition("a", 1), TopicPartition("a", 0), TopicPartition("b", 7)})
    if state.value == "Empty":
        partitions = frozenset()
    found = Transaction("id", 1 << 40, 300, 60_000, state, partitions, 1_000, 900)
    assert decode_value("id", encode_value(found)) == found


@pytest.mark.parametrize("data", [b"", b"\0\1\0\1x", encode_key("id")[:-1]])
def test_other_keys(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_key(data)


@pytest.mark.parametrize("change", [(1, 1), (16, 7), (16, 9)])
def test_other_values(change: tuple[int, int]) -> None:
    data = bytearray(encode_value(Transaction("id", 1, 0, 1)))
    data[change[0]] = change[1]
    with pytest.raises(ProtocolError):
        decode_value("id", bytes(data))
