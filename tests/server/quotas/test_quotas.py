"""The quotas of a broker as its settings and ZooKeeper have them."""

from __future__ import annotations

from pathlib import Path

from kafka08.network.connection_limits import ConnectionLimits
from kafka08.server.quotas.quotas import Quotas
from tests.fakes.runtime import FakeClock
from tests.fakes.zookeeper import FakeZooKeeper, Session
from tests.server.support import broker_config
from zk import entity_configs


def made(tmp_path: Path, **settings: object) -> tuple[Session, Quotas]:
    clock = FakeClock()
    zk = Session(FakeZooKeeper()).start()
    config = broker_config(tmp_path, **settings)
    return zk, Quotas(config, clock, zk, ConnectionLimits(clock))  # type: ignore[arg-type]


def test_no_setting_and_no_node_is_no_quota(tmp_path: Path) -> None:
    zk, quotas = made(tmp_path)
    quotas.load()
    assert not quotas.throttle.is_on
    assert not any(zk.exists(f"/config/{kind}") for kind in ("users", "clients", "ips"))


def test_settings_and_windows(tmp_path: Path) -> None:
    _, quotas = made(
        tmp_path,
        quota_producer_default=1000,
        quota_window_num=3,
        quota_window_size_seconds=2,
    )
    assert quotas.throttle.is_on
    assert quotas.throttle.producers.use("u", "c", 5000) == 1
    assert quotas.throttle.consumers.use("u", "c", 10**9) == 0


def test_changes_of_each_type_have_a_reader(tmp_path: Path) -> None:
    zk, quotas = made(tmp_path)
    readers = dict(quotas.watched())
    assert list(readers) == ["users", "clients", "ips", "brokers"]
    entity_configs.alter(zk, "users/u", lambda _: {"producer_byte_rate": "1"})  # type: ignore[arg-type]
    readers["users"]("users/u")
    assert quotas.throttle.is_on
    assert not quotas.mutations.limits
    entity_configs.alter(zk, "clients/c", lambda _: {"controller_mutation_rate": "1"})  # type: ignore[arg-type]
    readers["clients"]("clients/c")
    assert quotas.mutations.limits
