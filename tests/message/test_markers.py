"""Markers, byte for byte those of Kafka 3.9.1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka08.message.batch import RECORDS_AT, header_of, set_leader_epoch
from kafka08.message.entry import OFFSET, has_right_crc
from kafka08.message.markers import ABORT, COMMIT, OTHER_CONTROL, encode_marker, marker_of

GOLDEN = Path(__file__).parents[1] / "golden" / "transactions-vectors.json"
DISK = json.loads(GOLDEN.read_text())["disk"]
STORED = [
    bytes.fromhex(entry["hex"])
    for entries in DISK.values()
    if isinstance(entries, list)
    for entry in entries
    if entry["attributes"] & 0x20
]


def test_there_are_markers_of_both_kinds() -> None:
    found = [marker_of(data[RECORDS_AT:]) for data in STORED]
    assert {kind for kind, _ in found} == {ABORT, COMMIT}
    assert {epoch for _, epoch in found} == {0}


@pytest.mark.parametrize("stored", STORED)
def test_a_marker_is_written_as_kafka_does(stored: bytes) -> None:
    header = header_of(stored)
    kind, coordinator_epoch = marker_of(stored[RECORDS_AT:])
    made = bytearray(
        encode_marker(
            header.producer_id, header.producer_epoch, kind, coordinator_epoch, header.max_timestamp
        )
    )
    assert has_right_crc(made, 0, len(made))
    OFFSET.pack_into(made, 0, header.base_offset)
    set_leader_epoch(made, 0, header.leader_epoch)
    assert bytes(made) == stored
    assert header.is_control and header.is_transactional


@pytest.mark.parametrize("place", [0, 4, 8, 9])
def test_other_records_are_not_markers(place: int) -> None:
    record = bytearray(encode_marker(1, 0, COMMIT, 3, 0)[RECORDS_AT:])
    assert marker_of(record) == (COMMIT, 3)
    record[place] ^= 2
    assert marker_of(record)[0] == OTHER_CONTROL
    assert marker_of(record[:-1]) == marker_of(b"") == (OTHER_CONTROL, -1)
