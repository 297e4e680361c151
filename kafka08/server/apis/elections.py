"""API 43, ElectLeaders of later releases: preferred replicas lead again.

Any broker answers, by writing the request for the controller that kafka-preferred-replica-election
writes. The answer comes when this broker's metadata shows the new leaders, or with code 7 at the
timeout: the elections may then still happen. Unclean elections are not served.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka08 import admin
from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import TopicPartition
from kafka08.errors import (
    NO_ERROR,
    LaterCode,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from kafka08.protocol import admin_schemas as a
from kafka08.protocol.schemas import PartitionMetadata, RequestHeader
from kafka08.runtime import Runtime
from kafka08.server.requests.long_work import by_topic
from zk.client import ZkClient
from zk.errors import NodeExistsError

_POLL_SECONDS = 0.05
_PREFERRED = 0


class ElectLeadersApi:
    key = 43
    last_version = 1

    def __init__(self, zk: ZkClient, cache: MetadataCache, runtime: Runtime) -> None:
        self._zk = zk
        self._cache = cache
        self._runtime = runtime

    def handle(
        self, header: RequestHeader, request: a.ElectLeadersRequest
    ) -> a.ElectLeadersResponse:
        if request.election_type != _PREFERRED:
            return self.failure(header, request, LaterCode.INVALID_REQUEST)
        codes = {key: self._code(key) for key in self._asked(request)}
        if request.topics is None:
            unneeded = LaterCode.ELECTION_NOT_NEEDED
            codes = {key: code for key, code in codes.items() if code != unneeded}
        self._elect(codes, request.timeout_ms)
        return _response(codes)

    def _asked(self, request: a.ElectLeadersRequest) -> list[TopicPartition]:
        if request.topics is None:
            return [
                TopicPartition(topic, each.partition)
                for topic in self._cache.topics()
                for each in self._cache.topic_metadata(topic, later=True).partitions
            ]
        return [TopicPartition(each.topic, p) for each in request.topics for p in each.partitions]

    def _state(self, key: TopicPartition) -> PartitionMetadata | None:
        if not self._cache.has_partition(*key):
            return None
        partitions = self._cache.topic_metadata(key.topic, later=True).partitions
        return next(each for each in partitions if each.partition == key.partition)

    def _code(self, key: TopicPartition) -> int:
        """0 if the preferred replica of the partition can lead but does not, else the wire code."""
        state = self._state(key)
        if state is None or not state.replicas:
            return UnknownTopicOrPartitionError.code
        preferred = state.replicas[0]
        if state.leader == preferred:
            return LaterCode.ELECTION_NOT_NEEDED
        if preferred in state.offline_replicas or preferred not in state.isr:
            return LaterCode.PREFERRED_LEADER_NOT_AVAILABLE
        return NO_ERROR

    def _elect(self, codes: dict[TopicPartition, int], timeout_ms: int) -> None:
        """Ask the controller. Partitions whose preferred replica does not lead in time get code
        7."""
        clock = self._runtime.clock
        deadline = clock.monotonic() + timeout_ms / 1000
        waiting = [key for key, code in codes.items() if code == NO_ERROR]
        is_asked = False
        while waiting:
            is_asked = is_asked or self._ask(waiting)
            waiting = [key for key in waiting if self._code(key) == NO_ERROR]
            if not waiting or clock.monotonic() >= deadline:
                break
            self._runtime.sleep(_POLL_SECONDS)
        codes.update(dict.fromkeys(waiting, RequestTimedOutError.code))

    def _ask(self, partitions: Iterable[TopicPartition]) -> bool:
        """Write the request for the controller; False while another election is under way."""
        try:
            admin.start_preferred_election(self._zk, partitions)
        except NodeExistsError:
            return False
        return True

    def failure(
        self, header: RequestHeader, request: a.ElectLeadersRequest, code: int
    ) -> a.ElectLeadersResponse:
        keys = [] if request.topics is None else self._asked(request)
        return _response(dict.fromkeys(keys, code))._replace(error=code)


def _response(codes: dict[TopicPartition, int]) -> a.ElectLeadersResponse:
    answers = ((key, a.ElectedPartition(key.partition, code, None)) for key, code in codes.items())
    return a.ElectLeadersResponse(0, [a.ElectedTopic(*item) for item in by_topic(answers)])
