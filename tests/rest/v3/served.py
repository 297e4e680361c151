"""A REST application whose brokers are real handlers of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka08.protocol.schemas import MetadataRequest
from tests.rest.world import RestWorld
from tests.server.admin_support import AdminRig


def served_by(rig: AdminRig, **settings: str) -> RestWorld:
    """A cluster whose brokers answer as those of the rig do, but for metadata."""
    world = RestWorld(rest__cluster__id="c", **settings)
    answer: Callable[[int, Any], Any] = rig.network.script  # type: ignore[assignment]

    def script(port: int, request: Any) -> Any:
        return None if isinstance(request, MetadataRequest) else answer(port, request)

    world.brokers.script = script
    return world
