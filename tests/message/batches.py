"""Records, batches and messages of format 1 to test with, encoded the plain, slow way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from integration.later import frames
from integration.later.frames import varint
from kafka08.message.batch import Batch, encode_batch
from kafka08.message.compression import compress
from kafka08.message.entry import encode_entry

__all__ = ["varint"]

GOLDEN: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "formats.json").read_text()
)["sets"]

# (key, value, timestamp delta, headers)
Record = tuple[bytes | None, bytes | None, int, list[tuple[bytes, bytes | None]]]

fields = st.none() | st.binary(max_size=30)
records = st.tuples(
    fields,
    fields,
    st.sampled_from([0, 0, 1, -5, 63, 64, 2**31, -(2**63), 2**63 - 1]),
    st.lists(st.tuples(st.binary(max_size=5), fields), max_size=3),
)


def golden(name: str) -> bytes:
    """A recorded set."""
    return bytes.fromhex(GOLDEN[name]["records"])


def encode_record(delta: int, record: Record) -> bytes:
    key, value, time_delta, headers = record
    return frames.encode_record(frames.Record(key, value, headers, time_delta), delta)


def encode_records(found: list[Record], deltas: list[int] | None = None) -> bytes:
    deltas = list(range(len(found))) if deltas is None else deltas
    return b"".join(encode_record(d, record) for d, record in zip(deltas, found, strict=True))


def batch(
    found: list[Record],
    base: int = 0,
    codec: int = 0,
    *,
    deltas: list[int] | None = None,
    last_delta: int | None = None,
    time: int = 1000,
    attributes: int = 0,
    **changes: int,
) -> bytes:
    """A batch of records with these offset deltas; any field of its header can be changed."""
    data = encode_records(found, deltas)
    last = last_delta if last_delta is not None else (deltas or [len(found) - 1])[-1]
    newest = max([time + record[2] for record in found], default=-1)
    header = Batch(
        base_offset=base,
        size=0,
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=codec | attributes,
        last_delta=last,
        base_timestamp=time,
        max_timestamp=newest if abs(newest) < 1 << 63 else time,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=len(found),
    )._replace(**changes)
    return encode_batch(header, compress(codec, data, magic=2) if codec else data)


def simple(*values: bytes, key: bytes | None = b"k") -> list[Record]:
    """Records a millisecond apart, with one header each."""
    return [(key, value, number, [(b"h", b"x")]) for number, value in enumerate(values)]


def timed(pairs: list[tuple], first: int = 0, time: int = 1000) -> bytes:
    """Plain messages of format 1, a millisecond apart."""
    return b"".join(
        [encode_entry(*pair, first + i, timestamp=time + i) for i, pair in enumerate(pairs)]
    )


def timed_wrapper(inner: bytes, codec: int, offset: int = 0, time: int = 1000) -> bytes:
    return encode_entry(None, compress(codec, inner, magic=1), offset, codec, timestamp=time)
