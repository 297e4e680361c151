from __future__ import annotations

from typing import Any

import pytest
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from kafka08.protocol.admin_schemas import ConfigEntry
from kafka08.rest.calls import Call
from kafka08.rest.errors import RestError
from kafka08.rest.media import Media
from kafka08.rest.v3.configs import config_text, read_changes, shown_entry


def call(**body: Any) -> Call:
    environ = EnvironBuilder(method="POST", json=body).get_environ()
    return Call(Request(environ), {}, Media(""), Media(""))


def test_values_are_texts() -> None:
    assert [config_text(each) for each in (1, True, "x", 1.5)] == ["1", "true", "x", "1.5"]
    for wrong in (None, [], {}):
        with pytest.raises(RestError) as caught:
            config_text(wrong)
        assert (caught.value.status, caught.value.code) == (400, 40002)


def test_changes_of_several() -> None:
    listed = [{"name": "a", "value": 1}, {"name": "b", "operation": "DELETE", "value": None}]
    assert read_changes(call(data=listed)) == ({"a": "1", "b": None}, False)
    assert read_changes(call(data=listed[1:], validate_only=True)) == ({"b": None}, True)
    with pytest.raises(RestError, match=r"data\[0\]\.operation is not SET or DELETE"):
        read_changes(call(data=[{"name": "a", "operation": "ADD"}]))


def test_a_source_of_a_later_release_is_unknown() -> None:
    assert shown_entry(ConfigEntry("a", "1", False, source=99))["source"] == "UNKNOWN"
