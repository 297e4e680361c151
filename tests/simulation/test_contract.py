"""The contract of tests/zk on the model, with one server and with several that are behind."""

from __future__ import annotations

import pytest

from tests.simulation.rig import AT_ONCE, BEHIND, ModelGround
from tests.zk.contract import PROMISES
from tests.zk.contract.ground import Promise


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_one_server_keeps(promise: Promise) -> None:
    promise(ModelGround(1, AT_ONCE, 0))


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.__name__)
def test_several_servers_keep(promise: Promise) -> None:
    for seed in range(10):
        promise(ModelGround(3, BEHIND, seed))
