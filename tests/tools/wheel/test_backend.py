from __future__ import annotations

import pytest
from setuptools import build_meta

from kafka08 import builds, compiled
from tools.wheel import backend


@pytest.fixture(autouse=True)
def _no_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """Setuptools does not read the project to tell its own needs."""
    monkeypatch.delenv(builds.SWITCH, raising=False)
    monkeypatch.setattr(build_meta, "get_requires_for_build_wheel", lambda _settings: ["cython"])


@pytest.mark.parametrize(
    ("obstacle", "switch", "needed"),
    [
        ("", None, ["cython", backend.MYPY]),
        ("there is no C compiler", None, ["cython"]),
        ("", "1", ["cython"]),
    ],
)
def test_mypy_is_fetched_only_where_it_compiles(
    obstacle: str, switch: str | None, needed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "obstacle", lambda: obstacle)
    if switch:
        monkeypatch.setenv(builds.SWITCH, switch)
    assert backend.get_requires_for_build_wheel() == needed


def test_every_hook_of_a_build_is_there() -> None:
    assert all(callable(getattr(backend, name)) for name in backend.__all__)
    hooks = {name for name in vars(build_meta) if name.startswith(("build_", "get_", "prepare_"))}
    assert hooks <= set(backend.__all__)
