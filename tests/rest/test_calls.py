from __future__ import annotations

import pytest

from kafka08.rest.calls import OPERATOR, READER, Answer, Call, Route, allowed
from kafka08.rest.errors import RestError
from kafka08.rest.media import Media


def call(query: dict[str, str] | None = None, data: bytes = b"") -> Call:
    media = Media("")
    return Call(args={}, query=query or {}, data=data, media=media, accept=media, url="http://h/")


def test_numbers_of_the_query() -> None:
    assert call({"n": "3"}).number("n", 0, 3) == 3
    assert call().number("n", 0, 3) is None
    for text in ("x", "4", "-1", "1" * 5000):
        with pytest.raises(RestError) as caught:
            call({"n": text}).number("n", 0, 3)
        assert caught.value.status == 400


def test_bodies() -> None:
    assert not call(data=b" \n").has_body
    assert call(data=b'{"a": 1}').fields("a").integer("a") == 1
    with pytest.raises(RestError, match="required"):
        call().fields("a")


def test_a_setting_may_leave_topics_out() -> None:
    allowed("t", [], "key")
    allowed("t", ["t"], "key")
    with pytest.raises(RestError, match="Topic u is not in key"):
        allowed("u", ["t"], "key")


def test_what_changes_something_is_not_for_readers() -> None:
    def handler(call: Call) -> Answer:
        return Answer()

    assert not Route("GET", "/", "x", handler, (1,), READER).changes
    assert Route("GET", "/", "x", handler, (1,), OPERATOR).changes
