"""Request bodies made wrong: pure functions of a seeded random source."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

_EXTREMES = [
    struct.pack(code, number)
    for code, bits in ((">b", 8), (">h", 16), (">i", 32), (">q", 64))
    for number in (0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 2 ** (bits // 2))
    if number < 2 ** (bits - 1)
]
_NASTY = [
    *(b"../", b"..", b"/", b"\0", b"/tmp/x", b"\xff\xfe", b"__consumer_offsets", b"fuzz"),
    *(b"\x1f\x8b\x08\0", b"\x82SNAPPY\0", b"\x04\x22\x4d\x18"),
]


def flip_bits(random: Random, body: bytearray) -> None:
    for _ in range(random.choice((1, 1, 1, 2, 8))):
        body[random.randrange(len(body))] ^= 1 << random.randrange(8)


def overwrite(random: Random, body: bytearray) -> None:
    value = random.choice(_EXTREMES)
    at = random.randrange(len(body))
    body[at : at + len(value)] = value


def plant(random: Random, body: bytearray) -> None:
    """Bytes with a meaning somewhere, in place of others of the same number."""
    value = random.choice(_NASTY)
    at = random.randrange(len(body))
    body[at : at + len(value)] = value


def truncate(random: Random, body: bytearray) -> None:
    del body[random.randrange(len(body)) :]


def insert(random: Random, body: bytearray) -> None:
    at = random.randrange(len(body) + 1)
    body[at:at] = random.randbytes(random.choice((1, 2, 4, 8, 100)))


def delete(random: Random, body: bytearray) -> None:
    at = random.randrange(len(body))
    del body[at : at + random.choice((1, 2, 4, 8, 30))]


def duplicate(random: Random, body: bytearray) -> None:
    start, end = sorted((random.randrange(len(body)), random.randrange(len(body) + 1)))
    at = random.randrange(len(body) + 1)
    body[at:at] = body[start:end]


def append(random: Random, body: bytearray) -> None:
    body += random.randbytes(random.choice((1, 4, 50)))


def scramble(random: Random, body: bytearray) -> None:
    """Random bytes, at times behind a true header."""
    keep = random.choice((0, 4, 12))
    body[keep:] = random.randbytes(random.randrange(200))


Mutation = Callable[[Random, bytearray], None]
# Those that leave the structure whole are more frequent: they get further.
MUTATIONS: list[tuple[Mutation, int]] = [
    (flip_bits, 8), (overwrite, 5), (plant, 4), (append, 2), (insert, 1),
    (delete, 1), (duplicate, 2), (truncate, 1), (scramble, 1),
]  # fmt: skip
_WEIGHTED = [mutation for mutation, weight in MUTATIONS for _ in range(weight)]


def mutate(random: Random, body: bytes) -> bytes:
    """``body`` with one or two things wrong; now and then with none."""
    changed = bytearray(body)
    for _ in range(random.choice((0, 1, 1, 1, 1, 1, 1, 2, 2))):
        if changed:
            random.choice(_WEIGHTED)(random, changed)
    return bytes(changed)


def lie_about_size(random: Random, body: bytes) -> bytes:
    """A frame whose size word is not the size of its body."""
    size = random.choice(
        (0, -1, -(2**31), 2**31 - 1, 2**24, len(body) + 1, len(body) + 1000, len(body) - 1, 4)
    )
    return struct.pack(">i", size) + body
