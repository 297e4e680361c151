"""Acknowledged messages survive faults, and the checker notices if they do not."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from integration.cluster.hosts import Loopback
from integration.faults.run import Options, Run

SEED = 20150902


@pytest.mark.parametrize("faults", [10, 20])
def test_some_faults(faults: int, tmp_path: Path) -> None:
    options = Options(faults, SEED, tmp_path, brokers=4, partitions=3, producers=2)
    outcome = Run(options, Loopback(), print).go()
    assert outcome.sound, f"seed {SEED}\n{outcome.report()}"
    assert outcome.verdict.acknowledged > 25 * faults


@pytest.mark.scenario("transactions-16", "transactions-20")
@pytest.mark.slow
def test_transactions_are_whole(tmp_path: Path) -> None:
    options = Options(20, SEED, tmp_path, brokers=4, partitions=3, producers=1, transactions=1)
    outcome = Run(options, Loopback(), print).go()
    assert outcome.sound, f"seed {SEED}\n{outcome.report()}"
    assert outcome.transactions.committed > 100
    assert outcome.transactions.converted > 100


@pytest.mark.slow
def test_idempotent_producers_store_nothing_twice(tmp_path: Path) -> None:
    options = Options(15, SEED, tmp_path, brokers=4, partitions=3, producers=2, idempotent=True)
    outcome = Run(options, Loopback(), print).go()
    assert outcome.sound, f"seed {SEED}\n{outcome.report()}"
    assert not outcome.verdict.duplicated


@pytest.mark.slow
def test_a_hundred_faults(tmp_path: Path) -> None:
    seed = random.randrange(1 << 31)
    outcome = Run(Options(100, seed, tmp_path), Loopback(), print).go()
    assert outcome.sound, f"seed {seed}\n{outcome.report()}"


@pytest.mark.slow
def test_a_broker_that_acknowledges_too_early_is_caught(tmp_path: Path) -> None:
    options = Options(40, SEED, tmp_path, broken=True, stop_early=True)
    outcome = Run(options, Loopback(), print).go()
    assert outcome.verdict.counts.get("lost") or outcome.verdict.counts.get("changed")
