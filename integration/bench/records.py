"""Message sets for the load generators, whose records have sizes from a stated distribution.

Sizes are log-normal: ``median * exp(sigma * N(0, 1))``, at least one byte. With sigma 0.7 the
mean is 1.28 times the median, a twentieth of the records is below 0.32 times it, a twentieth above
3.2 times, a hundredth above 5.1 times. Values are text, which compresses about as log lines do.
Everything is drawn from fixed seeds: two runs send the same bytes. Knows nothing of sockets.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from integration.wire import entry
from kafka08.message.compression import NAMES, ZSTD, compress

CODECS = {name: number for number, name in NAMES.items() if number != ZSTD}
SIGMA = 0.7
KEY_BYTES = (8, 24)
ENTRY_OVERHEAD = 26
TEXT_BYTES = 1 << 18
WORDS = 1000
# Sets of one kind: as many as fill this, within these bounds.
KIND_BYTES = 512 << 10
FEWEST_SETS, MOST_SETS = 8, 240


class Batch(NamedTuple):
    """A message set ready to send. ``payload``: bytes of keys and values. ``ends``: where each
    record ends within a plain set; empty if the set is compressed."""

    message_set: bytes
    records: int
    payload: int
    ends: tuple[int, ...]


class Sizes(NamedTuple):
    """A distribution of value sizes in bytes; sigma 0 means that all are equal."""

    name: str
    median: int
    sigma: float = SIGMA

    def draw(self, noise: random.Random) -> int:
        return max(1, round(self.median * math.exp(noise.normalvariate(0, 1) * self.sigma)))


AROUND_100 = Sizes("~100 B", 100)
AROUND_1K = Sizes("~1 KB", 1024)
EQUAL_100 = Sizes("100 B equal", 100, 0)

Record = tuple[bytes | None, bytes]


@functools.cache
def words(size: int, seed: int) -> bytes:
    """Text-like bytes: the n-th word of the vocabulary is as frequent as 1 / n."""
    noise = random.Random(seed)
    vocabulary = [b"%x" % noise.getrandbits(28) for _ in range(WORDS)]
    weights = [1 / rank for rank in range(1, WORDS + 1)]
    return b" ".join(noise.choices(vocabulary, weights, k=size // 2 + 1))[:size]


def stream(sizes: Sizes, keyed: bool, noise: random.Random) -> Iterator[Record]:
    """Records without end."""
    text = words(TEXT_BYTES, 1)
    while True:
        size = sizes.draw(noise)
        first = noise.randrange(TEXT_BYTES - size)
        key = noise.randbytes(noise.randint(*KEY_BYTES)) if keyed else None
        yield key, text[first : first + size]


def sets(records: Iterator[Record], set_bytes: int, codec: str) -> Iterator[Batch]:
    """Sets of at most so many bytes before compression, of one record at least. A record that no
    longer fits begins the next set, so that large ones are as frequent as they are drawn."""
    taken, size = [next(records)], 0
    size = _entry_bytes(taken[0])
    for record in records:
        if size + _entry_bytes(record) > set_bytes:
            yield encode(taken, codec)
            taken, size = [], 0
        taken.append(record)
        size += _entry_bytes(record)


def _entry_bytes(record: Record) -> int:
    return ENTRY_OVERHEAD + len(record[0] or b"") + len(record[1])


def encode(records: Sequence[Record], codec: str = "none") -> Batch:
    """One set with offsets from 0, as producers send it."""
    entries = [entry(key, value, number) for number, (key, value) in enumerate(records)]
    plain, ends = b"".join(entries), tuple(itertools.accumulate(map(len, entries)))
    payload = len(plain) - ENTRY_OVERHEAD * len(records)
    if codec == "none":
        return Batch(plain, len(records), payload, ends)
    number = CODECS[codec]
    wrapper = entry(None, compress(number, plain), len(records) - 1, number)
    return Batch(wrapper, len(records), payload, ())


@functools.cache
def batches(
    sizes: Sizes, set_bytes: int, codec: str = "none", keyed: bool = False
) -> tuple[Batch, ...]:
    """Different sets of one kind. ``set_bytes`` 0: one record in each."""
    noise = random.Random(f"{sizes} {set_bytes} {keyed}")
    count = max(FEWEST_SETS, min(MOST_SETS, KIND_BYTES // max(1, set_bytes)))
    found = sets(stream(sizes, keyed, noise), set_bytes, codec)
    return tuple(itertools.islice(found, count))


def equal(record_bytes: int, set_bytes: int, codec: str = "none") -> Batch:
    """One set of records of one size."""
    return batches(Sizes("equal", record_bytes, 0), set_bytes, codec)[0]
