"""One frame in, the parts of its reply out: decode, hand to the API's handler, encode.

Mirrors the outer half of kafka.server.KafkaApis. Bytes that are not a request raise ProtocolError
(the server closes the connection); an exception while a parsed request is handled becomes the
API's own failure reply, so that the client is never left waiting.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Protocol, TypeAlias

from kafka08.errors import KafkaError, code_of
from kafka08.metrics.requests import RequestMeter, RequestMetrics
from kafka08.network.peer import current_peer
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.codec import Part
from kafka08.protocol.registry import ORIGINAL_APIS, Apis, served_by
from kafka08.protocol.requests import RequestDecoder, encode_response
from kafka08.protocol.schemas import Message, RequestHeader
from kafka08.runtime import Runtime
from kafka08.server.quotas.throttle import Throttle
from kafka08.server.requests import request_log
from kafka08.server.requests.long_work import MANY_BYTES, MANY_PRODUCE_BYTES, collector
from zk.errors import ZkConnectionError

logger = logging.getLogger("kafka.server.KafkaApis")

_PRODUCE: Final = b"\0\0"
_FETCH: Final = 1

Parts: TypeAlias = list[Part]  # of an encoded answer


class Handler(Protocol):
    """One API in the versions 0 to ``last_version``, as far as the dispatcher's table goes.

    ``handle`` answers a request, ``failure`` answers it with a wire code. Either returns None where
    the wire has no answer, or raises ConnectionClosed. The version in the header is that of the
    request's layout and its answer's.
    """

    key: int
    last_version: int

    def handle(self, header: RequestHeader, request: Message) -> Message: ...
    def failure(self, header: RequestHeader, request: Message, code: int) -> Message: ...


def last_versions(handlers: Iterable[Handler]) -> dict[int, int]:
    """The last version that is handled, by API key."""
    return {handler.key: handler.last_version for handler in handlers}


class Dispatcher:
    """The handlers by API key. Serves those APIs and versions of ``apis`` that they handle:
    ``served``. Requests are counted; where their time goes only if it ``is_timed``."""

    def __init__(
        self,
        runtime: Runtime,
        handlers: Iterable[Handler],
        apis: Apis = ORIGINAL_APIS,
        throttle: Throttle | None = None,
        is_timed: bool = True,
    ) -> None:
        self._runtime = runtime
        self._throttle = throttle or Throttle(runtime.clock)
        self._handlers = {handler.key: handler for handler in handlers}
        self.served = served_by(apis, last_versions(self._handlers.values()))
        self._decoder = RequestDecoder(self.served)
        self._is_logged = request_log.is_wanted()
        self.metrics = RequestMetrics()
        self._is_timed = is_timed
        self._now = runtime.clock.monotonic

    def handle(self, frame: memoryview, address: str) -> Parts | None:
        """Serve one request of the client at ``address``."""
        timer = self._throttle.timer
        if timer is None:
            return self._handle_and_record(frame, address)
        timer.begin()
        try:
            return self._handle_and_record(frame, address)
        finally:
            timer.end()

    def _handle_and_record(self, frame: memoryview, address: str) -> Parts | None:
        peer = current_peer.get() if self._is_timed else None
        if peer is None:
            meter, parts = self._handle(frame, address)
            meter.requests.count += 1
            return parts
        begun = peer.begun_at
        queued = begun - peer.read_at
        peer.waited = 0.0
        meter, parts = self._handle(frame, address)
        over = self._now()
        waited = peer.waited
        local = over - begun - waited
        if parts is None:
            meter.record(queued, local, waited, 0.0, 0.0)
        else:
            peer.unsent.append((meter, queued, local, waited, over))
        return parts

    def _handle(self, frame: memoryview, address: str) -> tuple[RequestMeter, Parts | None]:
        # A long list takes long to decode, and its answer to encode. A produce request is mostly
        # long because of its messages, which are not decoded here.
        size = len(frame)
        if size > MANY_BYTES and (size > MANY_PRODUCE_BYTES or bytes(frame[:2]) != _PRODUCE):
            return self._handle_long(frame, address)
        header, request = self._decoder.decode(frame)
        meter = self._meter(header.api_key, request)
        if self._throttle.is_on and header.api_key in self._throttle.counted:
            return meter, self._handle_counted(header, request, address, size, encode_response)
        response = self._answer(header, request, address)
        if response is None:
            return meter, None
        return meter, encode_response(header.correlation_id, response, header.api_version)

    def _handle_long(self, frame: memoryview, address: str) -> tuple[RequestMeter, Parts | None]:
        with collector:
            with collector.at_rest():
                header, request = self._runtime.blocking(self._decoder.decode, frame)
            meter = self._meter(header.api_key, request)
            if self._throttle.is_on and header.api_key in self._throttle.counted:
                encode = partial(self._runtime.blocking, encode_response)
                return meter, self._handle_counted(header, request, address, len(frame), encode)
            response = self._answer(header, request, address)
            if response is None:
                return meter, None
            answered = header.correlation_id, response, header.api_version
            parts: Parts = self._runtime.blocking(encode_response, *answered)
            del request, response, answered
            return meter, parts

    def _meter(self, key: int, request: Message) -> RequestMeter:
        if key == _FETCH:
            is_follower = request.replica_id >= 0
            return self.metrics.fetch_follower if is_follower else self.metrics.fetch_consumer
        return self.metrics.of(key, self.served[key].name)

    def _handle_counted(
        self,
        header: RequestHeader,
        request: Message,
        address: str,
        size: int,
        encode: Callable[..., Parts],
    ) -> Parts | None:
        throttle, version = self._throttle, header.api_version
        response = self._answer(header, throttle.requested(header, request), address)
        parts = None if response is None else encode(header.correlation_id, response, version)
        answer_size = sum(map(len, parts or ()))
        throttle_time_ms = throttle.answered(header, request, size, answer_size)
        # Version 0 of Produce and Fetch does not have the field. A handler may have set it.
        if (
            parts is not None
            and (version or header.api_key > _FETCH)
            and throttle_time_ms > getattr(response, "throttle_time_ms", throttle_time_ms)
        ):
            response = response._replace(throttle_time_ms=throttle_time_ms)
            parts = encode(header.correlation_id, response, version)
        return parts

    def _answer(self, header: RequestHeader, request: Message, address: str) -> Message:
        if not self._is_logged:
            return self._serve(header, request)
        clock = self._runtime.clock
        started = clock.monotonic()
        request_log.begun(header, request, address)
        try:
            return self._serve(header, request)
        finally:
            request_log.completed(header, request, address, clock.monotonic() - started)

    def _serve(self, header: RequestHeader, request: Message) -> Message:
        handler = self._handlers[header.api_key]
        try:
            response = handler.handle(header, request)
        except ConnectionClosed:
            self._meter(header.api_key, request).requests.count += 1
            raise
        except ZkConnectionError as error:
            # The lost connection has been reported, and clients try again.
            logger.warning("[KafkaApi] no answer from ZooKeeper for request %s: %s", header, error)
            response = handler.failure(header, request, code_of(error))
        except Exception as error:
            # Any peer can provoke these errors at will, so they get a line without a traceback.
            logger.error(
                "[KafkaApi] error when handling request %s: %s",
                header, error, exc_info=not isinstance(error, KafkaError),
            )  # fmt: skip
            response = handler.failure(header, request, code_of(error))
        return response
