"""The records of transactions. Each names its place, so readers need no list of them. Pure."""

from __future__ import annotations

import random
from typing import NamedTuple

MAX_PADDING = 200


class Record(NamedTuple):
    """A record's producer, its transaction there, and its place in the transaction."""

    producer: str
    transaction: int
    number: int

    def __str__(self) -> str:
        return f"{self.producer}.{self.transaction}.{self.number}"


def encode(record: Record) -> bytes:
    """The bytes of a record's value, a function of its name alone."""
    text = b"%s/" % str(record).encode()
    noise = random.Random(text)
    return text + noise.randbytes(noise.randrange(MAX_PADDING))


def decode(data: bytes | None) -> Record | None:
    """The record behind ``data``; None for bytes that no producer of ours sent."""
    try:
        found = parse((data or b"").split(b"/", 1)[0].decode())
    except ValueError:
        return None
    return found if encode(found) == data else None


def parse(text: str) -> Record:
    """Of ``str(record)``. Raises ValueError."""
    producer, transaction, number = text.split(".")
    return Record(producer, int(transaction), int(number))
