"""`pytest --scenarios` prints the required behaviour, each situation with its tests."""

from __future__ import annotations

import pytest

from tests import scenarios


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--scenarios", action="store_true", help="print the situations with their tests, and end"
    )


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    if not config.getoption("--scenarios"):
        return None
    print("\n".join(scenarios.table()))
    return 0
