"""Brokers of both kinds for a module of Spark tests, with the settings that it names ``PROPS``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration import original
from integration.harness import Broker, ZooKeeper
from integration.spark.scene import Servers

BOTH = [pytest.param("ours"), pytest.param("original", marks=pytest.mark.original)]


@pytest.fixture(scope="module", params=BOTH)
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "original" and not original.available():
        pytest.skip(original.missing())
    return str(request.param)


@pytest.fixture(scope="module")
def servers(
    request: pytest.FixtureRequest, zookeeper: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Servers]:
    made = Servers(zookeeper, tmp_path_factory.mktemp, getattr(request.module, "PROPS", {}))
    yield made
    made.stop()


@pytest.fixture
def either(servers: Servers, kind: str) -> Broker:
    """The module's broker of this kind; tests use topics of their own and leave it running."""
    return servers.get(kind)


@pytest.fixture
def broker(servers: Servers) -> Broker:
    return servers.get("ours")
