"""The start of a broker waits for ZooKeeper, and for nothing else."""

from __future__ import annotations

import pytest

from kafka08.server.broker import KafkaServer
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
