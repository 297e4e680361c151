from __future__ import annotations

import pytest

from kafka08.producer.partitioners import (
    byte_array_partitioner,
    default_partitioner,
    java_hash,
    murmur2,
    murmur2_partitioner,
)


@pytest.mark.scenario("client-29")
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("key", 106079),
        ("user-42", -147182656),
        ("g1", 3242),
        ("polygenelubricants", -(2**31)),
        (b"key", 135870),
        (b"user-42", 1595627679),
        (b"\xff\x00\x80", 28702),
        (b"", 1),
        (7, 7),
        (-5, -5),
        (2**31, -(2**31)),
        (2**32 + 3, 2),
        (-(2**40), -256),
    ],
)
def test_java_hash(key: object, expected: int) -> None:
    assert java_hash(key) == expected


def test_java_hash_refuses_other_types() -> None:
    for key in (1.5, True, None, ("a",)):
        with pytest.raises(TypeError):
            java_hash(key)


@pytest.mark.scenario("client-29")
def test_scala_partitioners() -> None:
    assert byte_array_partitioner(b"key", 12) == 6
    assert default_partitioner("key", 12) == 11
    assert default_partitioner("polygenelubricants", 12) == 0
    assert default_partitioner(b"key", 12) == 6
    assert default_partitioner("user-42", 12) == 147182656 % 12


@pytest.mark.scenario("client-30")
@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 275646681), (b"21", -973932308), (b"foobar", -790332482), (b"abc", 479470107)],
)
def test_murmur2(data: bytes, expected: int) -> None:
    assert murmur2(data) == expected


def test_murmur2_partitioner() -> None:
    assert murmur2_partitioner(b"foobar", 12) == 6
    assert murmur2_partitioner(b"21", 12) == 0
