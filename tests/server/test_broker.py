"""The start of a broker waits for ZooKeeper, and for nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka08.server.broker import KafkaServer, connected
from kafka08.server.part import Part
from tests.server.support import Rig, broker_config
from tests.zk.server import fresh_chroot
from zk.access import UNSECURED
from zk.errors import DuplicateBrokerError, SessionExpiredError, ZkConnectionError
from zk.registry import ensure_common_paths


def test_an_outage_or_a_lost_session_is_waited_out(rig: Rig) -> None:
    server = KafkaServer(rig.config, rig.runtime)  # type: ignore[arg-type]
    failures = [ZkConnectionError(), SessionExpiredError()]

    def act() -> str:
        if failures:
            raise failures.pop()
        return "done"

    assert server._patiently(act) == "done"


def test_the_chroot_is_made_where_an_outage_is_waited_out(tmp_path: Path) -> None:
    """Three brokers ended when ZooKeeper was killed between their connections and first calls."""
    config = broker_config(tmp_path, zookeeper_connect=fresh_chroot() + "/deep/er")
    zk = connected(config, UNSECURED)
    try:
        assert zk.exists("/") is None
        ensure_common_paths(zk)
        assert zk.exists("/brokers/ids") is not None
    finally:
        zk.close()


def test_other_failures_end_the_start(rig: Rig) -> None:
    server = KafkaServer(rig.config, rig.runtime)  # type: ignore[arg-type]

    def act() -> None:
        raise DuplicateBrokerError()

    with pytest.raises(DuplicateBrokerError):
        server._patiently(act)


def test_a_stop_ends_the_wait(rig: Rig) -> None:
    server = KafkaServer(rig.config, rig.runtime)  # type: ignore[arg-type]
    server._stopping.set()

    def act() -> None:
        raise ZkConnectionError()

    with pytest.raises(ZkConnectionError):
        server._patiently(act)


@pytest.mark.parametrize("error", [ZkConnectionError(), ValueError("a bug")])
def test_a_part_that_does_not_stop_does_not_keep_the_others(
    rig: Rig, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    server = KafkaServer(rig.config, rig.runtime)  # type: ignore[arg-type]
    stopped: list[str] = []

    def fail() -> None:
        raise error

    server._begin(Part("the logs", stop=lambda: stopped.append("the logs")))
    server._begin(Part("isr maintenance", stop=fail))
    server._stop_all()
    assert stopped == ["the logs"]
    (record,) = caplog.records
    assert record.getMessage().startswith("Stopping isr maintenance failed")
    assert bool(record.exc_info) is isinstance(error, ValueError)
