"""One frame in, the parts of its reply out: decode, hand to the API's handler, encode.

Mirrors the outer half of kafka.server.KafkaApis. Bytes that are no request raise ProtocolError
(the server closes the connection); an exception while a parsed request is handled becomes the
API's own failure reply, so that the client is never left waiting.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Protocol

from kafka08.errors import KafkaError, code_of
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.requests import decode_request, encode_response
from kafka08.protocol.schemas import RequestHeader

logger = logging.getLogger("kafka.server.KafkaApis")
request_logger = logging.getLogger("kafka.request.logger")


class Handler(Protocol):
    """One API: ``handle`` answers a request, ``failure`` answers it with a wire code.

    Either returns None where the wire has no answer, or raises ConnectionClosed.
    """

    key: int

    def handle(self, header: RequestHeader, request: Any) -> Any: ...
    def failure(self, header: RequestHeader, request: Any, code: int) -> Any: ...


class Dispatcher:
    """The handlers by API key."""

    def __init__(self, handlers: Iterable[Handler]) -> None:
        self._handlers = {handler.key: handler for handler in handlers}

    def handle(self, frame: memoryview, address: str) -> list[Any] | None:
        """Serve one request of the client at ``address``."""
        header, request = decode_request(frame)
        handler = self._handlers[header.api_key]
        try:
            response = handler.handle(header, request)
        except ConnectionClosed:
            raise
        except Exception as error:
            # Any peer can provoke our own errors at will: those are worth a line, no traceback.
            logger.error(
                "[KafkaApi] error when handling request %s: %s",
                header, error, exc_info=not isinstance(error, KafkaError),
            )  # fmt: skip
            response = handler.failure(header, request, code_of(error))
        if response is None:
            return None
        return encode_response(header.correlation_id, response)
