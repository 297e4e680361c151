"""API 18, ApiVersions: the APIs and versions that have handlers here.

Not of 0.8.2.2, which closes the connection. So does this broker while an original broker is in
the cluster: partitions that an original leads are not for clients that use later versions.
"""

from __future__ import annotations

import re

from kafka08.errors import NO_ERROR, LaterCode
from kafka08.network.peer import current_peer
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.later_schemas import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ServedVersions,
    UnsupportedApiVersionsRequest,
)
from kafka08.protocol.registry import API_VERSIONS, ORIGINAL_APIS, Apis
from kafka08.protocol.schemas import RequestHeader
from kafka08.server.cluster_view.originals import Originals

_FIRST_WITH_SOFTWARE = 3
# JoinGroup, Heartbeat and DescribeGroups of 0.8.2.2 do not make groups.
_STUBS = (11, 12, 15)
_SOFTWARE = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?")


class ApiVersionsApi:
    key = API_VERSIONS
    last_version = 3

    def __init__(self, served: Apis, originals: Originals) -> None:
        """``served``: the APIs of the other handlers."""
        own = ServedVersions(API_VERSIONS, 0, self.last_version)
        self._served = sorted([*_versions_of(served), own])
        self._own = [own]
        self._originals = originals

    def handle(
        self, header: RequestHeader, request: ApiVersionsRequest | UnsupportedApiVersionsRequest
    ) -> ApiVersionsResponse:
        if self._originals.are_registered():
            raise ConnectionClosed("ApiVersions while an original broker is registered")
        if isinstance(request, UnsupportedApiVersionsRequest):
            return ApiVersionsResponse(LaterCode.UNSUPPORTED_VERSION, self._own)
        software = (request.client_software_name, request.client_software_version)
        is_valid = all(map(_SOFTWARE.fullmatch, software))
        if header.api_version >= _FIRST_WITH_SOFTWARE and not is_valid:
            return self.failure(header, request, LaterCode.INVALID_REQUEST)
        peer = current_peer.get()
        if peer is not None:
            peer.introduce(*software)
        return ApiVersionsResponse(NO_ERROR, self._served)

    def failure(
        self,
        header: RequestHeader,
        request: ApiVersionsRequest | UnsupportedApiVersionsRequest,
        code: int,
    ) -> ApiVersionsResponse:
        return ApiVersionsResponse(code, [])


class LoginVersions:
    """The versions that listeners with logins name, whose clients ask for them before they log in.

    While an original broker is registered, or with api.versions.enable off, these are the versions
    of 0.8.2.2. ``served``: the APIs that have handlers.
    """

    def __init__(self, served: Apis, originals: Originals, later: bool) -> None:
        self._originals = originals
        self._later = _versions_of(served) if later else []
        self._old = _versions_of(
            {
                key: api._replace(last=min(api.last, served[key].last))
                for key, api in ORIGINAL_APIS.items()
                if key in served and key not in _STUBS
            }
        )

    def now(self) -> list[ServedVersions]:
        """Without those of the login's own APIs."""
        if not self._later or self._originals.are_registered():
            return self._old
        return self._later


def _versions_of(served: Apis) -> list[ServedVersions]:
    return [
        ServedVersions(api.key, 0, api.last) for api in served.values() if api.key != API_VERSIONS
    ]
