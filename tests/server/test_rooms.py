"""A broker's rooms together: what they serve, and what a new session needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.metrics.registry import Registry
from kafka08.protocol.registry import (
    API_VERSIONS,
    APIS,
    ORIGINAL_APIS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from kafka08.runtime import Scheduler
from kafka08.server.monitoring.monitoring import Monitoring
from kafka08.server.requests.listeners import Listening
from kafka08.server.rooms import Rooms, apis_of, handlers_of
from tests.fakes.runtime import FakeRuntime
from tests.server.support import Rig


@pytest.fixture(params=[False, True])
def rooms(request: pytest.FixtureRequest, make_rig: Callable[..., Rig]) -> Rooms:
    rig = make_rig(later=request.param, port=0, host_name="127.0.0.1")
    runtime: Any = rig.runtime
    zk: Any = rig.zk
    listening = Listening(rig.config, runtime)
    made = Rooms(rig.config, runtime, zk, rig.logs, listening, Monitoring(rig.config, runtime))
    made.server.start(made.dispatcher.handle, made.logins)
    request.addfinalizer(made.server.stop)
    return made


def test_every_api_of_the_table_is_served_by_a_room(rooms: Rooms) -> None:
    later = rooms.view.is_followed
    table = APIS if later else ORIGINAL_APIS
    # A login has an end of its own.
    assert rooms.dispatcher.served.keys() == table.keys() - {SASL_HANDSHAKE, SASL_AUTHENTICATE}
    assert all(api.last == table[key].last for key, api in rooms.dispatcher.served.items())


def test_no_api_is_served_by_two_rooms(rooms: Rooms) -> None:
    keys = [handler.key for room in rooms.all for handler in room.handlers()]
    assert len(keys) == len(set(keys))


def test_a_new_session_registers_after_the_controller_has_heard(rooms: Rooms) -> None:
    def register() -> None: ...

    acts = rooms.session_expired(register)
    assert acts[0] == rooms.controller.session_expired
    assert acts[-1] == rooms.view.registrations.session_expired
    assert acts.index(register) < acts.index(rooms.config_changes.session_expired)


def test_metrics_and_timers_of_all_rooms(rooms: Rooms) -> None:
    fake = FakeRuntime()
    runtime: Any = fake
    registry = Registry(runtime)
    rooms.run(registry, Scheduler(runtime))
    assert list(registry.pieces())
    assert [task.name for task in fake.tasks] == [
        "counts",
        "highwatermark-checkpoint",
        "isr-expiration",
        "idle-fetchers",
        "refused-partitions",
        "offsets-expiration",
        "transaction-abort",
        "transactionalId-expiration",
    ]


@pytest.mark.parametrize(("later", "table"), [(False, ORIGINAL_APIS), (True, APIS)])
def test_the_settings_choose_among_the_handlers(
    make_rig: Callable[..., Rig], later: bool, table: object
) -> None:
    rig = make_rig(later=later)
    assert apis_of(rig.config) is table
    keys = {each.key for each in handlers_of(rig.config, rig.rooms, rig.rooms[1].originals)}
    assert keys <= apis_of(rig.config).keys()
    assert (API_VERSIONS in keys) is later
