"""API 22, InitProducerId of later releases: ids for idempotent producers; no transactions.

Without ZooKeeper no new block of ids can be claimed. Clients are asked to try again (14): the
general -1 is final to some of them.
"""

from __future__ import annotations

import logging

from kafka08.errors import NO_ERROR, LaterCode, OffsetsLoadInProgressError
from kafka08.protocol.later_schemas import InitProducerIdRequest, InitProducerIdResponse
from kafka08.protocol.schemas import RequestHeader
from kafka08.server.cluster_view.producer_ids import ProducerIds
from zk.errors import ZkError

logger = logging.getLogger("kafka.server.KafkaApis")


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
        try:
            return InitProducerIdResponse(0, NO_ERROR, self._ids.take(), 0)
        except ZkError as error:
            logger.warning("No producer id for %s: %s", header.client_id, error)
            return self.failure(header, request, OffsetsLoadInProgressError.code)

    def failure(
        self, header: RequestHeader, request: InitProducerIdRequest, code: int
    ) -> InitProducerIdResponse:
        return InitProducerIdResponse(0, code, -1, -1)
