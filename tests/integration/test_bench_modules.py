"""Every benchmark can be imported: nobody runs all of them after each change."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import integration.bench

MODULES = sorted(path.stem for path in Path(integration.bench.__file__).parent.glob("[a-z]*.py"))
OURS = ("integration", "kafka08", "tools", "zk")


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_finds_what_it_imports(name: str) -> None:
    try:
        import_module(f"integration.bench.{name}")
    except ModuleNotFoundError as error:
        if str(error.name).startswith(OURS):
            raise
        pytest.skip(f"{error.name} is not installed")
