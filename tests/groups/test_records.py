"""Records of the offsets topic: the bytes that later releases write, and all stored versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka08.errors import ProtocolError
from kafka08.groups.records import (
    Committed,
    GroupPartition,
    GroupRecord,
    MemberRecord,
    decode_group,
    decode_key,
    decode_value,
    encode_group,
    encode_group_key,
    encode_key,
    encode_value,
)

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "group-records.json").read_text(encoding="utf-8")
)["records"]
MEMBER = MemberRecord("m-1", "m", "/h", 10000, b"sub", b"own", "i1", 60000)


@pytest.mark.parametrize("stored", GOLDEN, ids=lambda stored: str(stored["what"]))
def test_what_kafka_3_9_wrote_is_read(stored: dict[str, str | None]) -> None:
    key = decode_key(bytes.fromhex(stored["key_hex"] or ""))
    value = None if stored["value_hex"] is None else bytes.fromhex(stored["value_hex"])
    if isinstance(key, GroupPartition):
        assert key.group.startswith("g") and (value is None or decode_value(value).offset == 2)
    else:
        assert encode_group_key(key) == bytes.fromhex(stored["key_hex"] or "")
        if value is not None:
            assert encode_group(decode_group(value)) == value


def test_the_versions_of_offsets() -> None:
    key = GroupPartition("g", "t", 3)
    assert encode_key(key) == bytes.fromhex("0000 000167 000174 00000003")
    assert decode_key(b"\0\1" + encode_key(key)[2:]) == decode_key(encode_key(key)) == key
    value = Committed(42, "m", 7)
    plain = encode_value(value)
    assert plain == bytes.fromhex("0000 000000000000002a 00016d 0000000000000007")
    for version, data in (
        (0, plain),
        (1, plain + bytes(8)),
        (2, plain),
        (3, plain[:10] + b"\xff\xff\xff\xff" + plain[10:]),
    ):
        assert decode_value(bytes([0, version]) + data[2:]) == value
        for end in range(len(data)):
            with pytest.raises(ProtocolError):
                decode_value(bytes([0, version]) + data[2:end])


def test_the_versions_of_groups() -> None:
    record = GroupRecord("consumer", 4, "range", "m-1", [MEMBER], 99)
    newest = encode_group(record)
    assert decode_group(newest) == record
    head = newest[2 : newest.index((99).to_bytes(8, "big"))]
    one = (1).to_bytes(4, "big")
    names = b"\0\3m-1" + b"\0\1m" + b"\0\2/h"
    rest = (10000).to_bytes(4, "big") + b"\0\0\0\3sub" + b"\0\0\0\3own"
    rebalance, since = (60000).to_bytes(4, "big"), (99).to_bytes(8, "big")
    old = MEMBER._replace(instance_id=None)
    assert decode_group(b"\0\2" + head + since + one + names + rebalance + rest) == (
        record._replace(members=[old])
    )
    assert decode_group(b"\0\1" + head + one + names + rebalance + rest) == (
        record._replace(since_ms=-1, members=[old])
    )
    assert decode_group(b"\0\0" + head + one + names + rest) == (
        record._replace(since_ms=-1, members=[old._replace(rebalance_timeout_ms=10000)])
    )


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\3", b"\0\x09rest", b"\xff\xff"])
def test_other_versions_are_errors(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_key(data)
    with pytest.raises(ProtocolError):
        decode_value(data)
    with pytest.raises(ProtocolError):
        decode_group(data[:2] + b"\0\0" if data == b"\0\3" else data)
