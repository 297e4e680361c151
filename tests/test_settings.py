"""Settings declared as fields of a class."""

from __future__ import annotations

import dataclasses

import pytest

from kafka08.errors import ConfigError
from kafka08.settings import Settings, setting


def test_the_mechanism_serves_other_classes() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Client(Settings):
        group_id: str = setting("group.id", doc="The group.")
        wait_ms: int = setting("wait.ms", 100, low=0, doc="How long.")

    assert Client.from_properties({"group.id": "g", "other": "x"}) == Client(group_id="g")
    with pytest.raises(ConfigError, match=r"wait\.ms has value -1"):
        Client(group_id="g", wait_ms=-1)
