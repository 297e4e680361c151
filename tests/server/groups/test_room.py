from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka08.server.apis.coordinated_groups import JoinGroupApi
from kafka08.server.apis.groups import GroupStubApi
from tests.server.support import Rig


@pytest.mark.parametrize(("later", "kind"), [(False, GroupStubApi), (True, JoinGroupApi)])
def test_groups_are_made_with_api_versions_only(
    make_rig: Callable[..., Rig], later: bool, kind: type
) -> None:
    rig = make_rig(later=later)
    (join,) = [each for each in rig.rooms[2].handlers() if each.key == 11]
    assert isinstance(join, kind)
