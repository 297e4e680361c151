"""Which requests a broker serves: the handlers of its rooms, as the settings say."""

from __future__ import annotations

from collections.abc import Iterable

from kafka08.protocol.registry import APIS, ORIGINAL_APIS, Apis, served_by
from kafka08.server.apis.versions import ApiVersionsApi
from kafka08.server.cluster_view.originals import Originals
from kafka08.server.part import Room
from kafka08.server.requests.dispatch import Handler, last_versions
from kafka08.settings.broker import BrokerConfig


def apis_of(config: BrokerConfig) -> Apis:
    return APIS if config.api_versions_enable else ORIGINAL_APIS


def handlers_of(config: BrokerConfig, rooms: Iterable[Room], originals: Originals) -> list[Handler]:
    """The handlers of ``apis_of``; with api.versions.enable also that of ApiVersions."""
    apis = apis_of(config)
    handlers = [each for room in rooms for each in room.handlers() if each.key in apis]
    if config.api_versions_enable:
        handlers.append(ApiVersionsApi(served_by(apis, last_versions(handlers)), originals))
    return handlers
