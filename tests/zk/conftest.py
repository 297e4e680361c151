"""Fixtures of the tests that need a real ZooKeeper; other folders import them from here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.zk import server
from zk.client import ZkClient


@pytest.fixture
def chroot() -> str:
    """A connect string to an empty part of the tree."""
    return server.fresh_chroot()


@pytest.fixture
def client(chroot: str) -> Iterator[ZkClient]:
    connected = server.connect(chroot)
    yield connected
    connected.close()
