from __future__ import annotations

import pytest

from kafka08.server.monitoring.health import (
    CONTROLLER,
    PENDING_SHUTDOWN,
    RECOVERING,
    RUNNING,
    SHUTTING_DOWN,
    STARTING,
    Health,
)


@pytest.mark.scenario("ops-20")
def test_the_states_of_a_broker() -> None:
    health = Health()
    seen = [health.state]
    recovers, is_controller = [False], [False]
    health.loads(lambda: recovers[0])
    seen.append(health.state)
    recovers[0] = True
    seen.append(health.state)
    health.runs(lambda: is_controller[0])
    seen.append(health.state)
    is_controller[0] = True
    seen.append(health.state)
    for state in (PENDING_SHUTDOWN, SHUTTING_DOWN):
        health.enter(state)
        seen.append(health.state)
    assert seen == [
        *(STARTING, STARTING, RECOVERING, RUNNING),
        *(CONTROLLER, PENDING_SHUTDOWN, SHUTTING_DOWN),
    ]


@pytest.mark.scenario("ops-20")
def test_a_broker_that_runs_is_ready_unless_a_check_says_no() -> None:
    health = Health()
    reason = [""]
    health.add_check(lambda: reason[0])
    assert health.reasons() == ["the broker is starting"]
    health.runs(bool)
    assert health.reasons() == []
    reason[0] = "ZooKeeper is out of reach"
    assert health.reasons() == ["ZooKeeper is out of reach"]
    health.enter(PENDING_SHUTDOWN)
    assert health.reasons() == ["the broker is handing its leaderships over"]


def test_warnings_and_details_leave_a_broker_ready() -> None:
    health = Health()
    warning = [""]
    health.add_warning(lambda: warning[0])
    health.shows("directories", lambda: ["/a"])
    health.runs(bool)
    assert health.details() == {"directories": ["/a"]}
    warning[0] = "data directories are full: /a"
    assert health.reasons() == []
    assert health.details() == {"warnings": [warning[0]], "directories": ["/a"]}
