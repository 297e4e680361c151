from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka08.protocol.registry import API_VERSIONS, APIS, ORIGINAL_APIS
from kafka08.server.requests.room import apis_of, handlers_of
from tests.server.support import Rig


@pytest.mark.parametrize(("later", "table"), [(False, ORIGINAL_APIS), (True, APIS)])
def test_the_settings_choose_among_the_handlers(
    make_rig: Callable[..., Rig], later: bool, table: object
) -> None:
    rig = make_rig(later=later)
    assert apis_of(rig.config) is table
    keys = {each.key for each in handlers_of(rig.config, rig.rooms, rig.rooms[1].originals)}
    assert keys <= apis_of(rig.config).keys()
    assert (API_VERSIONS in keys) is later
