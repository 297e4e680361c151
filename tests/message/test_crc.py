"""The checksums of messages are zlib's and CRC-32C, from whichever library computes them."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.message import crc

LIBRARIES = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(name) is None, reason="is not built"))
    for name in ("kafka08.message.crc", "kafka08._native.checksums", "crc32c")
]


@pytest.fixture(params=LIBRARIES)
def crc32c(request: pytest.FixtureRequest) -> Callable[..., int]:
    found: Callable[..., int] = import_module(request.param).crc32c
    return found


def test_the_check_values_of_the_polynomials(crc32c: Callable[..., int]) -> None:
    assert crc.crc32(b"123456789") == 0xCBF43926
    assert crc.crc32(b"") == 0
    assert crc32c(b"123456789") == crc.slow_crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == crc.slow_crc32c(b"") == 0


@given(data=st.binary(max_size=300), tail=st.binary(max_size=100))
def test_it_is_zlibs_and_can_be_continued(data: bytes, tail: bytes) -> None:
    assert crc.crc32(data) == zlib.crc32(data)
    assert crc.crc32(tail, crc.crc32(data)) == zlib.crc32(data + tail)
    assert crc.crc32(memoryview(bytearray(data))) == zlib.crc32(data)


def test_crc32c_can_be_continued(crc32c: Callable[..., int]) -> None:
    data = random.Random(1).randbytes(100_000)  # no lane of it is like another
    for size in (0, 1, 7, 15, 16, 100, 1535, 1536, 1544, 4607, 65_535, 65_536, len(data)):
        whole = crc.slow_crc32c(data[:size])
        assert crc32c(memoryview(bytearray(data[:size]))) == whole
        assert crc32c(data[size // 3 : size], crc32c(data[: size // 3])) == whole


def test_only_bytes_have_a_checksum(crc32c: Callable[..., int]) -> None:
    with pytest.raises(TypeError):
        crc32c("text")
    with pytest.raises(TypeError):
        crc.crc32("text")


def test_without_machine_code_packages_compute_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka08._native.load", lambda name: None)
    plain = run_path(str(Path(crc.__file__)))
    assert plain["crc32"] is pytest.importorskip("isal.isal_zlib").crc32
    assert plain["crc32c"] is pytest.importorskip("crc32c").crc32c
