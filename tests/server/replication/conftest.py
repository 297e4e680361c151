from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.server.replication.pair import LeaderAndFollower, Make


@pytest.fixture
def make_pair(tmp_path: Path) -> Iterator[Make]:
    with ExitStack() as stack:

        def make(**settings: Any) -> LeaderAndFollower:
            pair = LeaderAndFollower(tmp_path, **settings)
            stack.callback(pair.close)
            return pair

        yield make


@pytest.fixture
def pair(make_pair: Make) -> LeaderAndFollower:
    return make_pair()
