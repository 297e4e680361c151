"""A fixture of all tests of simulations."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Nothing is logged: records that pytest keeps would keep logs and their files open."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
