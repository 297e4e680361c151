from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kafka08.runtime import GeventRuntime
from kafka08.server.monitoring.monitoring import Monitoring
from tests.server.disks import Disks
from tests.server.support import Rig, broker_config


@pytest.fixture
def make_rig(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    with ExitStack() as stack:

        def make(**settings: Any) -> Rig:
            rig = Rig(tmp_path, **settings)
            stack.callback(rig.close)
            return rig

        yield make


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig()


@pytest.fixture
def disks(make_rig: Callable[..., Rig], tmp_path: Path) -> Iterator[Disks]:
    yield Disks(make_rig(log_dirs=f"{tmp_path / 'a'},{tmp_path / 'b'}"), tmp_path)


@pytest.fixture
def start_monitoring(tmp_path: Path) -> Iterator[Callable[..., Monitoring]]:
    """Starts that of a broker with the settings it is given."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Monitoring:
            runtime = GeventRuntime(2)
            stack.callback(runtime.close)
            monitoring = Monitoring(broker_config(tmp_path, **settings), runtime)
            stack.callback(monitoring.stop)
            monitoring.start()
            return monitoring

        yield start
