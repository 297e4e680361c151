"""kafka08.console.pages.broker_settings."""

from __future__ import annotations

from typing import Any

from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from kafka08.console.pages.broker_settings import broker_settings
from kafka08.console.site import Visit
from kafka08.protocol import admin_schemas as a
from kafka08.security.users import User
from tests.console.scene import ConsoleScene


def told(*entries: tuple[str, str | None]) -> dict[str, str]:
    """The settings a and b after an answer with these."""
    scene = ConsoleScene()
    scene.look()

    def script(port: int, request: Any) -> Any:
        if not isinstance(request, a.DescribeConfigsRequest):
            return None
        listed = [a.ConfigEntry(*each, True) for each in entries]
        return a.DescribeConfigsResponse(0, [a.ResourceConfig(0, None, 4, "1", listed)])

    scene.cluster.script = script if entries else None
    visit = Visit(scene.site, Request(EnvironBuilder().get_environ()), User("", "admin"))
    return broker_settings(visit, 1, "a", "b")


def test_the_settings_that_a_broker_returns() -> None:
    assert told(("a", "1"), ("c", "3"), ("b", None)) == {"a": "1"}


def test_a_broker_that_does_not_answer_has_none() -> None:
    assert told() == {}
