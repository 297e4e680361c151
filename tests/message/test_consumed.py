"""Messages with their partition and decoders: plain and compiled ones are alike."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import InvalidMessageError
from kafka08.message import consumed as module
from kafka08.message.consumed import MessageSource
from kafka08.message.entry import encode_entry

needs_native = pytest.mark.skipif(
    module.native is None, reason="kafka08._native is not built: there is no C compiler"
)
every_twin = pytest.mark.parametrize(
    ("kind", "consumed"),
    [
        pytest.param(module.PlainMessage, module.plain_consumed, id="plain"),
        pytest.param(
            module.native and module.native.ConsumedMessage,
            module.native and module.native.consumed,
            id="native",
            marks=needs_native,
        ),
    ],
)
SOURCE = MessageSource("t", 3)
SET = b"".join(
    encode_entry(key, value, 10 + 2 * n)
    for n, (key, value) in enumerate([(b"k", b"v"), (None, b""), (b"", None), (b"z", b"7")])
)


def shown(message: Any) -> tuple[Any, ...]:
    details = (message.timestamp, message.timestamp_type, message.headers)
    return message.topic, message.partition, message.offset, message.key, message.value, details


@every_twin
def test_fields_and_offsets(kind: Any, consumed: Any) -> None:
    found = consumed(SOURCE, SET, 0, len(SET))
    assert {shown(message)[5] for message in found} == {(-1, -1, ())}
    assert [shown(message)[2:5] for message in found] == [
        (10, b"k", b"v"),
        (12, None, b""),
        (14, b"", None),
        (16, b"z", b"7"),
    ]
    assert {type(message) for message in found} == {kind}
    assert shown(found[0])[:2] == ("t", 3)
    assert repr(found[3]) == "Message(t:3:16)"
    numbered = consumed(SOURCE, memoryview(SET), 0, len(SET), 1, 2**40)
    assert [message.offset for message in numbered] == [2**40, 2**40 + 1, 2**40 + 2, 2**40 + 3]
    assert consumed(SOURCE, SET, 5, 5) == []


@every_twin
def test_decoders_are_called_at_each_access_and_not_for_null(kind: Any, consumed: Any) -> None:
    calls: list[bytes] = []

    def decode(data: bytes) -> str:
        calls.append(data)
        return data.decode()

    found = consumed(MessageSource("t", 0, decode, int), SET, 0, len(SET))
    assert calls == []
    assert (found[0].key, found[0].key, calls) == ("k", "k", [b"k", b"k"])
    assert (found[1].key, found[2].value, found[3].value) == (None, None, 7)
    with pytest.raises(ValueError, match="invalid literal"):
        _ = found[0].value


@every_twin
def test_a_message_is_made_by_hand_and_pickled(kind: Any, consumed: Any) -> None:
    message = kind(SOURCE, 5, b"k", None)
    assert shown(message) == ("t", 3, 5, b"k", None, (-1, -1, ()))
    message = kind(SOURCE, 5, b"k", None, (9, 1, (("h", b"x"),)))
    assert shown(message)[5] == (9, 1, (("h", b"x"),))
    if kind is module.Message:
        assert shown(pickle.loads(pickle.dumps(message))) == shown(message)


@every_twin
def test_what_is_no_whole_message_is_refused(kind: Any, consumed: Any) -> None:
    impossible = bytearray(encode_entry(b"k", b"v"))
    impossible[18:22] = (100).to_bytes(4, "big")
    with pytest.raises(InvalidMessageError):
        consumed(SOURCE, impossible, 0, len(impossible))


@needs_native
def test_the_compiled_function_reads_nothing_outside() -> None:
    for position, stop in [(-1, 5), (0, len(SET) + 1), (0, len(SET) - 1)]:
        with pytest.raises(IndexError):
            module.native.consumed(SOURCE, SET, position, stop)
    with pytest.raises(TypeError):
        module.native.ConsumedMessage(SOURCE, 0, None, None, ())
    for source in ((), ("t", 0), None):
        with pytest.raises(TypeError):
            module.native.consumed(source, SET, 0, len(SET))
        with pytest.raises(TypeError):
            module.native.ConsumedMessage(source, 0, None, None)


@needs_native
@given(
    pairs=st.lists(
        st.tuples(st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=60))
    ),
    number=st.none() | st.integers(0, 2**60),
)
def test_both_find_the_same(pairs: list[tuple[bytes | None, bytes | None]], number: Any) -> None:
    data = b"".join(encode_entry(*pair, offset) for offset, pair in enumerate(pairs))
    plain = module.plain_consumed(SOURCE, data, 0, len(data), 0, number)
    native = module.native.consumed(SOURCE, data, 0, len(data), 0, number)
    assert list(map(shown, native)) == list(map(shown, plain))
