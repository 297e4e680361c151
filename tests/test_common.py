"""Topic names, and the JVM's hashes: the expected numbers are those of a JVM."""

from __future__ import annotations

import pytest

from kafka08.common import (
    Broker,
    TopicPartition,
    fetcher_number,
    java_bytes_hash,
    java_string_hash,
    offsets_partition_for,
    scala_abs,
    validate_topic,
)
from kafka08.errors import InvalidTopicError


def test_values_print_as_in_the_originals_logs() -> None:
    assert str(TopicPartition("t", 3)) == "[t,3]"
    assert str(Broker(1, "h", 9092)) == "id:1,host:h,port:9092"


@pytest.mark.parametrize("name", ["t", "a.b-c_D9", "...", "x" * 255])
def test_legal_topics(name: str) -> None:
    validate_topic(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "can't be empty"),
        (".", 'cannot be "."'),
        ("..", 'cannot be "."'),
        ("x" * 256, "can't be longer than 255 characters"),
        ("a/b", "topic name a/b is illegal"),
        ("a\n", "is illegal"),
        ("ä", "is illegal"),
    ],
)
def test_illegal_topics(name: str, message: str) -> None:
    with pytest.raises(InvalidTopicError, match=message):
        validate_topic(name)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("Aa", 2112),
        ("BB", 2112),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),
    ],
)
def test_the_hash_of_a_java_string(text: str, value: int) -> None:
    assert java_string_hash(text) == value


@pytest.mark.parametrize(
    ("data", "value"), [(b"", 1), (b"\0", 31), (b"\xff", 30), (b"ab", 4066), (b"\x80\x7f", -2880)]
)
def test_the_hash_of_java_bytes(data: bytes, value: int) -> None:
    assert java_bytes_hash(data) == value


def test_the_absolute_value_of_the_lowest_integer_is_zero() -> None:
    assert [scala_abs(number) for number in (-(2**31), -1, 0, 7)] == [0, 1, 0, 7]


def test_a_group_has_one_partition_of_the_offsets_topic() -> None:
    assert offsets_partition_for("hello", 50) == 99162322 % 50
    assert offsets_partition_for("polygenelubricants", 50) == 0


def test_partitions_are_spread_over_fetchers() -> None:
    numbers = [fetcher_number(TopicPartition("a", partition), 3) for partition in range(4)]
    assert numbers == [(31 * 97 + partition) % 3 for partition in range(4)]
