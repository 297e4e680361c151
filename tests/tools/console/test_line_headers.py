"""Headers of lines, as kafka-console-producer of 3.9.1 reads them."""

from __future__ import annotations

import pytest

from tools.console.line_headers import HeadersParser, LineError


def parse(line: bytes, **properties: str) -> tuple[list, bytes]:
    given = {name.replace("_", "."): text for name, text in properties.items()}
    return HeadersParser(given).parse(line, 3)


def test_headers_come_first() -> None:
    assert parse(b"a:1,b:x:y\tk\tv") == ([("a", b"1"), ("b", b"x:y")], b"k\tv")
    assert parse(b"\tv") == ([], b"v")
    assert parse(b"a:\t") == ([("a", b"")], b"")


def test_separators() -> None:
    names = {"headers_delimiter": "||", "headers_separator": ";", "headers_key_separator": "=>"}
    assert parse(b"a=>1;b=>2||v", **names) == ([("a", b"1"), ("b", b"2")], b"v")


def test_null_markers() -> None:
    assert parse(b"a:NIL,b:\tv", null_marker="NIL") == ([("a", None), ("b", b"")], b"v")
    assert parse(b"NIL\tv", null_marker="NIL") == ([], b"v")
    with pytest.raises(LineError, match="should not be equal to the null marker 'NIL'"):
        parse(b"NIL:1\tv", null_marker="NIL")


def test_lines_that_do_not_fit() -> None:
    with pytest.raises(LineError, match="No headers delimiter found on line number 3: 'text'"):
        parse(b"text")
    with pytest.raises(LineError, match="No header key separator found in pair 'b' on line number"):
        parse(b"a:1,b\tv")
    assert parse(b"text", ignore_error="true") == ([], b"text")
    assert parse(b"a:1,b\tv", ignore_error="true") == ([("a", b"1"), ("b", None)], b"v")
