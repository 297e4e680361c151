"""kafka08.console.decoders."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.console.decoders import DECODERS, SHOWN_CHARACTERS, shown
from kafka08.groups.records import Committed, GroupPartition, encode_key, encode_value


def value(name: str, data: bytes) -> str:
    found = shown(data, DECODERS[name][1])
    assert found is not None
    return found.text


@pytest.mark.scenario("ops-48")
@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("text", "é".encode(), "é"),
        ("text", b"\xff", "\ufffd"),
        ("json", b'{"a":[1,"\xc3\xa9"]}', '{\n "a": [\n  1,\n  "é"\n ]\n}'),
        ("utf-16", "hé".encode("utf-16"), "hé"),
        ("utf-16", "hé".encode("utf-16-be"), "hé"),
        ("number", struct.pack(">q", -5), "-5"),
        ("number", b"\x7f", "127"),
        ("base64", b"\x00\xff", "AP8="),
    ],
)
def test_each_decoder(name: str, data: bytes, text: str) -> None:
    assert value(name, data) == text


def test_hex_has_positions_and_plain_characters() -> None:
    assert value("hex", b"abc\x00") == f"00000000  {'61 62 63 00':<47}  abc."


def test_records_of_the_offsets_topic() -> None:
    key = shown(encode_key(GroupPartition("g", "t", 3)), DECODERS["offsets"][0])
    assert key is not None
    assert "group='g'" in key.text
    assert "offset=7" in value("offsets", encode_value(Committed(7, "", 5)))


def test_null_is_not_text() -> None:
    assert shown(None, DECODERS["text"][1]) is None


@pytest.mark.parametrize("name", ["json", "number", "utf-16", "offsets"])
def test_bytes_of_another_kind_are_shown_in_hex_with_the_reason(name: str) -> None:
    found = shown(b"\xd8\x00abc", DECODERS[name][1])
    assert found is not None
    assert found.text.startswith("00000000  d8 00")
    assert found.note


@pytest.mark.scenario("ops-48")
@pytest.mark.parametrize("name", ["text", "hex", "base64"])
def test_large_values_are_cut_and_their_size_is_true(name: str) -> None:
    found = shown(b"m" * 2_000_000, DECODERS[name][1])
    assert found is not None
    assert len(found.text) <= SHOWN_CHARACTERS + 1000
    assert (found.size, found.is_cut) == (2_000_000, True)


@given(st.binary(max_size=200), st.sampled_from(sorted(DECODERS)))
def test_no_bytes_are_too_odd(data: bytes, name: str) -> None:
    for decoder in DECODERS[name]:
        found = shown(data, decoder)
        assert found is not None
        assert found.size == len(data)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b'{"a": 1}', "json"),
        (b"[1, 2]", "json"),
        (b"12", "text"),
        (b"{not json}", "text"),
        (b"[" * 100_000, "text"),
        ("zwei\tW\u00f6rter\r\n".encode(), "text"),
        (b"", "text"),
        (b"\xff\xfe", "hex"),
        (b"ab\x00", "hex"),
        (b"\x1b[31m", "hex"),
    ],
)
def test_without_a_choice_the_one_that_fits(data: bytes, name: str) -> None:
    found = shown(data)
    assert found is not None
    assert (found.text, found.note) == (value(name, data)[:SHOWN_CHARACTERS], "")


def test_a_long_or_a_high_text_opens() -> None:
    for data in (b"word " * 100, b"first\nsecond"):
        found = shown(data)
        assert found is not None and data.decode().startswith(found.head.split()[0])
        assert 0 < len(found.head) <= 120 and "\n" not in found.head
    short = shown(b"short")
    assert short is not None and short.head == ""
