from __future__ import annotations

import pytest

from zk.locations import NOWHERE, Location, members, read


@pytest.mark.parametrize(
    ("location", "written"),
    [
        (NOWHERE, {}),
        (Location("r"), {"rack": "r"}),
        (Location(unit="u"), {"unit": "u"}),
        (Location("r", "u"), {"rack": "r", "unit": "u"}),
    ],
)
def test_members_are_read_back(location: Location, written: dict[str, object]) -> None:
    assert members(location) == written
    assert read({"host": "h", **written}) == location


def test_what_makes_no_sense_is_left_out() -> None:
    assert read({"rack": 7, "unit": None}) == NOWHERE
