"""Cases of java.util.Properties.load, each checked against the JVM's answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.errors import ConfigError
from kafka08.settings.properties import load, parse, with_prefix


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("# comment\n! other\n\n \t\n", {}),
        ("a=1\nb:2\nc 3\nd\t4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("a = 1\nb : 2\nc =  = 3", {"a": "1", "b": "2", "c": "= 3"}),
        ("a\nb=\n=c", {"a": "", "b": "", "": "c"}),
        ("a=1\na=2", {"a": "2"}),
        ("  a=1  ", {"a": "1  "}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=one,\\\n   two", {"a": "one,two"}),
        ("a=one\\\n# two", {"a": "one# two"}),
        ("a=one\\\n\nb=2", {"a": "one", "b": "2"}),
        ("a=one\\\\\nb=2", {"a": "one\\", "b": "2"}),
        ("a=one\\", {"a": "one"}),
        ("# comment \\\na=1", {"a": "1"}),
        ("a\\ b\\:c\\=d=1", {"a b:c=d": "1"}),
        (r"a=\t\n\r\f\q\\", {"a": "\t\n\r\fq\\"}),
        (r"a=\u0041\u00e9", {"a": "A\xe9"}),
        (r"a=\ud83d\ude00", {"a": "\U0001f600"}),
        ("zookeeper.connect=a:2181,b:2181/root", {"zookeeper.connect": "a:2181,b:2181/root"}),
        ("a=b=c#d", {"a": "b=c#d"}),
    ],
)
def test_parse(text: str, expected: dict[str, str]) -> None:
    assert parse(text) == expected


def test_malformed_unicode_escape() -> None:
    with pytest.raises(ConfigError, match="Malformed"):
        parse(r"a=\u12")


def test_load_is_latin_1(tmp_path) -> None:
    path = tmp_path / "x.properties"
    path.write_bytes(b"a=\xe9\n")
    assert load(path) == {"a": "\xe9"}


@given(st.dictionaries(st.text("ab.-_", min_size=1), st.text("ab =:#!\\1"), max_size=5))
def test_escaped_pairs_come_back(pairs: dict[str, str]) -> None:
    def escape(value: str) -> str:
        return "".join("\\" + character for character in value)

    text = "\n".join(f"{key}={escape(value)}" for key, value in pairs.items())
    assert parse(text) == pairs


def test_settings_with_a_prefix() -> None:
    given = {"producer.acks": "all", "consumer.group.id": "g", "producer": "x"}
    assert with_prefix(given, "producer.") == {"acks": "all"}
