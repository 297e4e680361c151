"""The start of a broker waits for ZooKeeper, and for nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from kafka08.server.broker import KafkaServer
from kafka08.server.part import Part
from tests.server.support import Rig
from zk.errors import DuplicateBrokerError, SessionExpiredError, ZkConnectionError


def test_an_outage_or_a_lost_session_is_waited_out(rig: Rig) -> None:
    server = KafkaServer(rig.config, rig.runtime)  # type: ignore[arg-type]
    failures = [ZkConnectionError(), SessionExpiredError()]

    def act() -> str:
        if failures:
            raise failures.pop()
        return "done"

    assert server._patiently(act) == "done"


def test_an_outage_before_there_is_a_chroot_is_waited_out(rig: Rig) -> None:
    """Three brokers ended when ZooKeeper was killed between their connections and first calls."""
    failures: list[Exception] = [ZkConnectionError(), SessionExpiredError()]

    def ensure_chroot() -> None:
        if failures:
            raise failures.pop()

    zk: Any = rig.zk
    zk.ensure_chroot = ensure_chroot
    server = KafkaServer(rig.config, rig.runtime, connect=lambda config, access: zk)  # type: ignore[arg-type]
    assert server._connect_zookeeper() is zk
    assert not failures


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
