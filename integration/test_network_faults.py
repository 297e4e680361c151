"""Acknowledged messages survive faults of the network too: each host is a network namespace."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from integration.cluster.hosts import Namespaces
from integration.faults.run import Options, Run


@pytest.mark.scenario("transactions-53")
@pytest.mark.slow
def test_a_hundred_faults(tmp_path: Path) -> None:
    reason = Namespaces.missing()
    if reason:
        pytest.skip(reason)
    seed = random.randrange(1 << 31)
    hosts = Namespaces()
    try:
        outcome = Run(Options(100, seed, tmp_path, transactions=1), hosts, print).go()
    finally:
        hosts.close()
    assert outcome.sound, f"seed {seed}\n{outcome.report()}"
