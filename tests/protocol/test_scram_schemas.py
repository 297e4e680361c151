"""Requests and answers about SCRAM users, byte by byte, as later releases lay them out."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.protocol import scram_schemas as s
from kafka08.protocol.requests import decode_request, decode_response, encode_request
from kafka08.protocol.types import Struct
from tests.protocol.values import check_every_cut

BYTES: list[tuple[Any, str]] = [
    (s.DescribeUserScramCredentialsRequest(None), "00 00"),
    (
        s.DescribeUserScramCredentialsRequest([s.DescribedUserName("bob")]),
        "02 04 626f62 00 00",
    ),
    (
        s.DescribeUserScramCredentialsResponse(
            0, 0, None, [s.DescribedScramUser("bob", 0, None, [s.ScramCredentialInfo(2, 4096)])]
        ),
        "00 00000000 0000 00 02 04 626f62 0000 00 02 02 00001000 00 00 00",
    ),
    (
        s.AlterUserScramCredentialsRequest(
            [s.ScramDeletion("eve", 1)], [s.ScramUpsertion("bob", 2, 4096, b"salt", b"pw")]
        ),
        "02 04 657665 01 00 02 04 626f62 02 00001000 05 73616c74 03 7077 00 00",
    ),
    (
        s.AlterUserScramCredentialsResponse(0, [s.AlteredScramUser("bob", 93, "no")]),
        "00 00000000 02 04 626f62 005d 03 6e6f 00 00",
    ),
]


@pytest.mark.parametrize(("value", "data"), BYTES)
def test_bytes(value: Any, data: str) -> None:
    assert check_every_cut(type(value), bytes.fromhex(data)) == value


def test_both_headers_have_tagged_fields() -> None:
    request = s.DescribeUserScramCredentialsRequest([])
    frame = b"".join(encode_request(request, 7, "c"))
    assert frame.hex(" ") == "00 00 00 0e 00 32 00 00 00 00 00 07 00 01 63 00 01 00"
    tagged = bytes.fromhex("00000007 01 05 02 aaaa 00000000 001f 00 01 00")
    layout = Struct(s.DescribeUserScramCredentialsResponse)
    answer = s.DescribeUserScramCredentialsResponse(0, 31, None, [])
    assert decode_response(layout, tagged) == (7, answer)


def test_a_salted_password_is_not_shown() -> None:
    new = s.ScramUpsertion("bob", 1, 4096, b"salt", b"a-secret")
    assert "secret" not in repr(s.AlterUserScramCredentialsRequest([], [new]))


def test_brokers_of_0_8_do_not_know_them() -> None:
    frame = b"".join(encode_request(s.DescribeUserScramCredentialsRequest(None), 1, "c"))[4:]
    with pytest.raises(Exception, match="Wrong request type 50"):
        decode_request(frame)
