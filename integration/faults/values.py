"""The values that producers write. Each names its place, so readers need no list of them."""

from __future__ import annotations

import random
from typing import NamedTuple

MAX_PADDING = 300


class Value(NamedTuple):
    """The number of a record: its producer, and its place in what that one sent to a partition."""

    producer: int
    sequence: int


def encode(partition: int, value: Value) -> bytes:
    """The bytes of a record's value, a function of its number alone."""
    text = b"%d/%d/%d/" % (partition, *value)
    noise = random.Random(text)
    return text + noise.randbytes(noise.randrange(MAX_PADDING))


def decode(partition: int, data: bytes | None) -> Value | None:
    """The number behind ``data``; None for bytes that no producer of ours sent there."""
    try:
        number, producer, sequence = (data or b"").split(b"/", 3)[:3]
        value = Value(int(producer), int(sequence))
    except ValueError:
        return None
    return value if int(number) == partition and encode(partition, value) == data else None
