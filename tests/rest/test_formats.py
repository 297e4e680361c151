from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.message.consumed import MessageSource, PlainMessage
from kafka08.rest.errors import RestError
from kafka08.rest.formats import encoded, shown, size_of

SOURCE = MessageSource("t", 3)


@given(st.binary())
def test_bytes_come_back_as_they_were(data: bytes) -> None:
    message = PlainMessage(SOURCE, 7, None, data)
    text = shown("binary", message)["value"]
    assert encoded("binary", text, "value") == data
    assert size_of(message) == len(data)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Text of lone surrogates has no bytes in UTF-8.
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda each: st.lists(each) | st.dictionaries(st.text("ab"), each),
    max_leaves=10,
)


@given(JSON.filter(lambda value: value is not None))
def test_json_comes_back_as_it_was(value: object) -> None:
    data = encoded("json", value, "value")
    assert data is not None
    assert shown("json", PlainMessage(SOURCE, 7, data, data)) == {
        "key": value,
        "value": value,
        "partition": 3,
        "offset": 7,
    }


def test_null_stays_null() -> None:
    assert encoded("binary", None, "value") is None
    assert shown("json", PlainMessage(SOURCE, 7, None, None))["value"] is None


def test_base64_may_have_lines() -> None:
    assert encoded("binary", "aGVs\nbG8=\n", "value") == b"hello"


@pytest.mark.parametrize("text", ["aGVsbG8==", "aGVsbG8", "a", "====", "aGVs*G8=", 7, ["YQ=="]])
def test_other_text_is_not_base64(text: object) -> None:
    with pytest.raises(RestError, match="value is not base64") as caught:
        encoded("binary", text, "value")
    assert caught.value.code == 422


def test_a_stored_message_that_is_not_json_is_named() -> None:
    with pytest.raises(RestError, match="offset 7 of topic t partition 3") as caught:
        shown("json", PlainMessage(SOURCE, 7, None, b"{"))
    assert caught.value.code == 50002
