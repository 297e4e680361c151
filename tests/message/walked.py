"""Entries to walk over, whole and damaged."""

from __future__ import annotations

from hypothesis import strategies as st

from kafka08.message.entry import encode_entry
from kafka08.message.markers import ABORT, COMMIT, encode_marker
from tests.message.batches import batch, simple, timed, timed_wrapper

ONE = encode_entry(b"k", b"value", 10)
LAST = encode_entry(b"key", None, 15)
THREE = ONE + encode_entry(None, b"x" * 50, 11) + LAST


@st.composite
def batches(draw) -> bytes:
    deltas = draw(st.sampled_from([[0, 1], [1, 5], [0, 2**31 - 1]]))
    base = draw(st.sampled_from([0, 9, 2**62, 2**63 - 4]))
    attributes = draw(st.sampled_from([0, 0x20, 1]))
    producer = draw(st.sampled_from([-1, 0, 2**40]))
    found = simple(b"a", b"b")
    return batch(found, base, deltas=deltas, attributes=attributes, producer_id=producer)


@st.composite
def damaged_sets(draw, has_later=True) -> bytes:
    """Entries of any sizes, keys and codecs, with some bytes changed and the end cut off."""
    rows = draw(
        st.lists(
            st.tuples(
                st.none() | st.binary(max_size=20),
                st.none() | st.binary(max_size=200),
                st.integers(0, 40),
                st.sampled_from([0, 0, 0, 0, 1, 5]),
            ),
            max_size=8,
        )
    )
    later = st.sampled_from([timed([(b"k", b"v"), (None, None)], 3), timed_wrapper(b"", 1, 7)])
    later |= st.builds(
        encode_marker,
        st.just(7),
        st.just(1),
        st.sampled_from([ABORT, COMMIT]),
        st.just(3),
        st.just(9),
    )
    data = bytearray(b"".join(encode_entry(*row) for row in rows))
    if has_later:
        data += draw(st.sampled_from([b"", b""]) | later | batches()) + draw(batches() | later)
    for at, value in draw(
        st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), max_size=2)
    ):
        if data:
            data[at % len(data)] = value
    return bytes(data[: len(data) - draw(st.sampled_from([0, 0, 1, 30]))])


def produced(producer: int, base: int, *values: bytes) -> bytes:
    fields = {"producer_id": producer, "producer_epoch": 300, "base_sequence": (1 << 31) - 1}
    return batch(simple(*values), base, **fields)


PRODUCED = ONE + produced(1, 3, b"a", b"b") + produced(-1, 5, b"c") + produced(1 << 62, 9, b"d")
