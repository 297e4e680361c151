"""Committed offsets in the log and in memory: records, loading, forgetting, expiry."""

from __future__ import annotations

import os
from typing import Any

import pytest

from kafka08.common import OFFSETS_TOPIC, TopicPartition, offsets_partition_for
from kafka08.errors import ProtocolError
from kafka08.groups.records import (
    Committed,
    GroupPartition,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from kafka08.message.sets import encode_set, iter_messages
from kafka08.server.storage import state_topic
from tests.server.support import ME, PEER, Rig

KEY = GroupPartition("g", "t", 3)
NUMBER = offsets_partition_for("g", 4)
OFFSETS = (OFFSETS_TOPIC, NUMBER)


def committed(offset: int, timestamp: int | None = None, rig: Rig | None = None) -> Committed:
    return Committed(offset, "m", rig.clock.millis() if rig else timestamp or 0)


def records(rig: Rig) -> list[tuple[bytes | None, bytes | None]]:
    log = rig.replicas.partitions[TopicPartition(*OFFSETS)].any_log()
    data = log.read(0, 1 << 20).read()
    return [(message.key, message.value) for message in iter_messages(data)]


def store(rig: Rig, *pairs: Any, codec: int = 0) -> None:
    """Append records as the leader before us did."""
    data = encode_set([(key, value) for key, value in pairs], codec)
    rig.replicas.append_messages(TopicPartition(*OFFSETS), memoryview(bytearray(data)), 1)


@pytest.fixture
def led(rig: Rig) -> Rig:
    rig.lead(*OFFSETS)
    rig.runtime.run_spawned()
    return rig


def reload(rig: Rig) -> None:
    rig.follow(*OFFSETS)
    rig.lead(*OFFSETS)
    assert rig.offsets.check_coordinator("g") == 14
    rig.runtime.run_spawned()
    assert rig.offsets.check_coordinator("g") == 0


# Records


def test_records_are_the_originals() -> None:
    assert encode_key(KEY) == bytes.fromhex("0000 000167 000174 00000003")
    value = Committed(42, "", 1_400_000_000_000)
    data = bytes.fromhex("0000 000000000000002a 0000 00000145f680b000")
    assert encode_value(value) == data
    assert decode_key(encode_key(KEY)) == KEY and decode_value(data) == value


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\3" + encode_key(KEY)[2:], encode_key(KEY)[:-1]])
def test_other_records_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_key(data)


def test_a_commit_is_one_append_with_what_was_said(led: Rig) -> None:
    entries = {KEY: committed(42, 7), KEY._replace(partition=4): committed(43, 8)}
    assert led.offsets.commit("g", entries) == 0
    assert records(led) == [(encode_key(key), encode_value(entries[key])) for key in entries]


# Loading


def test_a_new_leader_knows_what_was_committed(led: Rig) -> None:
    for offset in (1, 2, 3):
        led.offsets.commit("g", {KEY: committed(offset, rig=led)})
    led.follow(*OFFSETS)
    assert led.offsets.fetch(KEY) is None
    reload(led)
    assert led.offsets.fetch(KEY) == committed(3, rig=led)


@pytest.mark.parametrize("codec", [0, 1, 2])
def test_tombstones_and_wrappers_are_read(led: Rig, codec: int) -> None:
    other = KEY._replace(topic="u")
    store(
        led,
        (encode_key(KEY), encode_value(committed(1, 5))),
        (encode_key(other), encode_value(committed(2, 5))),
        (encode_key(KEY), None),
        codec=codec,
    )
    reload(led)
    assert led.offsets.fetch(KEY) is None
    assert led.offsets.fetch(other) == committed(2, 5)


def test_records_nobody_understands_are_skipped(led: Rig) -> None:
    """0.8.2.2 gives up the rest of the partition."""
    store(
        led,
        (None, b"no key"),
        (b"\0\3rest", b"another version"),
        (encode_key(KEY), b"\0\4of another version"),
        (encode_key(KEY), encode_value(committed(1, 5))),
        (b"", None),
    )
    reload(led)
    assert led.offsets.fetch(KEY) == committed(1, 5)


def test_what_was_acknowledged_is_loaded_though_the_high_watermark_lags(rig: Rig) -> None:
    """The old leader's last acknowledgements reach a follower's high watermark a fetch later."""
    rig.lead(*OFFSETS)
    store(rig, (encode_key(KEY), encode_value(committed(41, 5))))
    store(rig, (encode_key(KEY), encode_value(committed(42, 5))))
    partition = rig.follow(*OFFSETS)
    partition.high_watermark = 1
    rig.lead(*OFFSETS, replicas=[ME, PEER])
    assert partition.high_watermark == 1
    rig.runtime.run_spawned()
    assert rig.offsets.fetch(KEY) == committed(42, 5)


def test_entries_larger_than_a_piece(led: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_topic, "_LOAD_BYTES", 20)
    for partition in range(3):
        key = KEY._replace(partition=partition)
        store(led, (encode_key(key), encode_value(Committed(partition, "x" * 500, 5))))
    reload(led)
    assert [led.offsets.fetch(KEY._replace(partition=n)) for n in range(3)] == [
        Committed(n, "x" * 500, 5) for n in range(3)
    ]


def test_a_gap_at_the_end_ends_the_load(led: Rig) -> None:
    store(led, (encode_key(KEY), encode_value(committed(1, 5))))
    log = led.replicas.partitions[TopicPartition(*OFFSETS)].any_log()
    log.log_end_offset = 5  # as after a truncation into a wrapper
    reload(led)
    assert led.offsets.fetch(KEY) == committed(1, 5)


def test_a_commit_during_the_load_is_the_newer_one(led: Rig) -> None:
    store(led, (encode_key(KEY), encode_value(committed(1, 5))))
    led.follow(*OFFSETS)
    led.lead(*OFFSETS)
    assert led.offsets.commit("g", {KEY: committed(2, 6)}) == 0
    led.runtime.run_spawned()
    assert led.offsets.fetch(KEY) == committed(2, 6)


def test_a_load_that_lost_its_leadership_leaves_nothing(
    led: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_topic, "_LOAD_BYTES", 20)
    for offset in (1, 2):
        store(led, (encode_key(KEY), encode_value(committed(offset, 5))))
    led.follow(*OFFSETS)
    led.lead(*OFFSETS)
    monkeypatch.setattr(led.runtime, "sleep", lambda seconds: led.follow(*OFFSETS))
    led.runtime.run_spawned()
    assert led.offsets.check_coordinator("g") == 16
    led.lead(*OFFSETS)
    assert led.offsets.check_coordinator("g") == 14  # its own load is still due


def test_other_groups_stay_when_one_partition_goes(led: Rig) -> None:
    other = next(name for name in "abcdef" if offsets_partition_for(name, 4) != NUMBER)
    led.lead(OFFSETS_TOPIC, offsets_partition_for(other, 4))
    led.runtime.run_spawned()
    led.offsets.commit("g", {KEY: committed(1, rig=led)})
    led.offsets.commit(other, {KEY._replace(group=other): committed(2, rig=led)})
    led.follow(*OFFSETS)
    assert led.offsets.fetch(KEY) is None
    assert led.offsets.fetch(KEY._replace(group=other)) is not None


def test_a_broken_log_ends_the_load_and_the_refusals(
    led: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(led, (encode_key(KEY), encode_value(committed(1, 5))))

    def broken(*args: Any) -> None:
        raise OSError("as told")

    monkeypatch.setattr(os, "pread", broken)
    reload(led)
    assert led.offsets.fetch(KEY) is None


# Deleted topics


def test_offsets_of_deleted_partitions_leave_a_tombstone(led: Rig) -> None:
    other = KEY._replace(topic="other")
    led.offsets.commit("g", {KEY: committed(1, rig=led), other: committed(2, rig=led)})
    led.offsets.partitions_deleted({TopicPartition("t", 3), TopicPartition("unknown", 0)})
    assert led.offsets.fetch(KEY) is None and led.offsets.fetch(other) is not None
    assert records(led)[2:] == [(encode_key(KEY), None)]
    led.offsets.partitions_deleted({TopicPartition("t", 3)})
    assert len(records(led)) == 3
    reload(led)
    assert led.offsets.fetch(KEY) is None and led.offsets.fetch(other) is not None


def test_partitions_that_are_deleted_during_the_load(led: Rig) -> None:
    other = KEY._replace(topic="other")
    led.offsets.commit("g", {KEY: committed(1, rig=led), other: committed(2, rig=led)})
    led.follow(*OFFSETS)
    led.lead(*OFFSETS)
    led.offsets.partitions_deleted({TopicPartition("t", 3)})
    led.runtime.run_spawned()
    assert led.offsets.fetch(KEY) is None and led.offsets.fetch(other) is not None
    assert records(led)[2:] == [(encode_key(KEY), None)]


def test_a_follower_writes_no_tombstones(led: Rig) -> None:
    led.offsets.commit("g", {KEY: committed(1, rig=led)})
    led.follow(*OFFSETS)
    led.offsets.partitions_deleted({TopicPartition("t", 3)})
    assert len(records(led)) == 1


def test_tombstones_are_written_in_pieces(led: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka08.server.groups.offset_manager._TOMBSTONES", 2)
    keys = [KEY._replace(partition=number) for number in range(5)]
    led.offsets.commit("g", {key: committed(1, rig=led) for key in keys})
    led.offsets.partitions_deleted({TopicPartition("t", number) for number in range(5)})
    assert records(led)[5:] == [(encode_key(key), None) for key in keys]


# Expiry


def test_old_commits_leave_a_tombstone(led: Rig) -> None:
    day = 1440 * 60_000
    now = led.clock.millis()
    young, other = KEY._replace(topic="young"), KEY._replace(topic="other")
    led.offsets.commit(
        "g",
        {
            KEY: committed(1, now - day - 1),
            young: committed(2, now - day),
            other: committed(3, now),
        },
    )
    led.offsets.expire()
    assert [led.offsets.fetch(key) is None for key in (KEY, young, other)] == [True, False, False]
    assert records(led)[3:] == [(encode_key(KEY), None)]
    reload(led)
    assert [led.offsets.fetch(key) is None for key in (KEY, young, other)] == [True, False, False]
    led.offsets.expire()
    assert len(records(led)) == 4


def test_a_tombstone_that_cannot_be_written_is_not_the_end(
    led: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    led.offsets.commit("g", {KEY: committed(1, 5)})

    def broken(*args: Any) -> None:
        raise OSError("as told")

    monkeypatch.setattr(os, "pwrite", broken)
    led.offsets.expire()
    assert led.offsets.fetch(KEY) is None


def test_stopping_ends_loads(led: Rig) -> None:
    store(led, (encode_key(KEY), encode_value(committed(1, 5))))
    led.follow(*OFFSETS)
    led.lead(*OFFSETS)
    led.offsets.stop()
    led.runtime.run_spawned()
    assert led.offsets.fetch(KEY) is None
