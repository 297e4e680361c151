"""API 22, InitProducerId of later releases: ids for idempotent producers; no transactions."""

from __future__ import annotations

from kafka08.errors import NO_ERROR, LaterCode
from kafka08.protocol.later_schemas import InitProducerIdRequest, InitProducerIdResponse
from kafka08.protocol.schemas import RequestHeader
from kafka08.server.producer_ids import ProducerIds


class InitProducerIdApi:
    key = 22
    last_version = 1

    def __init__(self, ids: ProducerIds) -> None:
        self._ids = ids

    def handle(
        self, header: RequestHeader, request: InitProducerIdRequest
    ) -> InitProducerIdResponse:
        if request.transactional_id is not None:
            return self.failure(header, request, LaterCode.INVALID_REQUEST)
        return InitProducerIdResponse(0, NO_ERROR, self._ids.take(), 0)

    def failure(
        self, header: RequestHeader, request: InitProducerIdRequest, code: int
    ) -> InitProducerIdResponse:
        return InitProducerIdResponse(0, code, -1, -1)
