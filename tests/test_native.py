"""Compiled modules: those of an older source are not used."""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from kafka08._native import is_stale, load

BUILT_S = 1_700_000_000


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """The source of a module that was built."""
    source = tmp_path / "scan.pyx"
    for path in (source, tmp_path / f"scan{EXTENSION_SUFFIXES[0]}"):
        path.write_bytes(b"")
        os.utime(path, (BUILT_S, BUILT_S))
    return source


@pytest.mark.parametrize(("later_s", "stale"), [(-60, False), (0, False), (5, False), (60, True)])
def test_a_source_that_changed_after_the_build(module: Path, later_s: int, stale: bool) -> None:
    os.utime(module, (BUILT_S + later_s, BUILT_S + later_s))
    assert is_stale("scan", str(module.parent)) is stale


def test_a_stale_module_is_not_used_and_the_log_says_so(
    module: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.utime(module)
    assert load("scan", str(module.parent)) is None
    assert caplog.messages == [
        "kafka08._native.scan was built from an older source and is not used; "
        "build it with: make setup"
    ]


def test_without_source_or_without_module_nothing_is_stale(module: Path) -> None:
    os.utime(module)
    os.unlink(module.parent / f"scan{EXTENSION_SUFFIXES[0]}")
    assert not is_stale("scan", str(module.parent))
    assert not is_stale("scan", "/an/archive.zip/kafka08/_native")


def test_a_module_that_does_not_exist(caplog: pytest.LogCaptureFixture) -> None:
    assert load("nothing") is None
    assert caplog.messages == []
