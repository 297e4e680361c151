"""The broker that a program is run against: ours, and a later release to prove the scenario."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration import modern
from integration.harness import Broker
from integration.modern import ModernBroker

SERVERS = [pytest.param("ours"), pytest.param(modern.VERSION, marks=pytest.mark.slow)]


@pytest.fixture(scope="session")
def later_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModernBroker]:
    if modern.missing():
        pytest.skip(modern.missing())
    broker = ModernBroker(tmp_path_factory.mktemp("later")).start()
    yield broker
    broker.kill()


@pytest.fixture(params=SERVERS, scope="session")
def server(request: pytest.FixtureRequest) -> Broker | ModernBroker:
    """Tests use topics and groups of their own."""
    name = "modern_broker" if request.param == "ours" else "later_broker"
    found = request.getfixturevalue(name)
    assert isinstance(found, (Broker, ModernBroker))
    return found
