"""APIs 8 to 12: offset commits and fetches, group coordinators, and the two stubs of 0.8.2.2.

Version 0 of OffsetCommit and OffsetFetch is about ZooKeeper and answered by any broker; the
versions from 1 on are about ``__consumer_offsets`` and answered by the group's coordinator.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import TopicPartition, offsets_partition_for
from kafka08.errors import (
    NO_ERROR,
    ConsumerCoordinatorNotAvailableError,
    LaterCode,
    MessageSetSizeTooLargeError,
    MessageSizeTooLargeError,
    NotCoordinatorForConsumerError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
    NotLeaderForPartitionError,
    OffsetMetadataTooLargeError,
    OffsetsLoadInProgressError,
    UnknownError,
    UnknownTopicOrPartitionError,
    UnsupportedForMessageFormatError,
)
from kafka08.groups.records import Committed, GroupPartition
from kafka08.protocol import schemas as s
from kafka08.protocol.group_schemas import HeartbeatResponse, JoinGroupStubResponse
from kafka08.protocol.schemas import Message, RequestHeader
from kafka08.runtime import Runtime
from kafka08.server.cluster_view.pauses import Pauses
from kafka08.server.cluster_view.registrations import Reachable
from kafka08.server.cluster_view.topic_creator import TopicCreator
from kafka08.server.groups.coordinator import MemberId
from kafka08.server.groups.offset_manager import OffsetManager
from kafka08.server.groups.requests import GroupRequests
from kafka08.server.groups.zk_offsets import ZkOffsets
from kafka08.server.requests.dispatch import Handler
from kafka08.server.requests.long_work import are_many, by_topic, in_turns, partitions_of, turns
from kafka08.settings.broker import BrokerConfig

logger = logging.getLogger("kafka.server.KafkaApis")

# The codes that a broker answers to a commit if it is not the coordinator.
_AS_COORDINATOR = {
    UnknownTopicOrPartitionError.code: ConsumerCoordinatorNotAvailableError.code,
    NotLeaderForPartitionError.code: NotCoordinatorForConsumerError.code,
}
# The same for the versions of later releases.
AS_LATER_COORDINATOR = {
    **_AS_COORDINATOR,
    NotEnoughReplicasError.code: ConsumerCoordinatorNotAvailableError.code,
    NotEnoughReplicasAfterAppendError.code: ConsumerCoordinatorNotAvailableError.code,
    MessageSizeTooLargeError.code: LaterCode.INVALID_COMMIT_OFFSET_SIZE,
    MessageSetSizeTooLargeError.code: LaterCode.INVALID_COMMIT_OFFSET_SIZE,
}
NO_OFFSET = -1


def is_too_long(metadata: str | None, limit: int) -> bool:
    """Length is counted in UTF-16 units, as Java counts."""
    return metadata is not None and len(metadata.encode("utf-16-be")) > 2 * limit


class OffsetCommitApi:
    key = 8
    last_version = 7

    def __init__(
        self,
        runtime: Runtime,
        cache: MetadataCache,
        members: GroupRequests,
        zk_offsets: ZkOffsets,
        config: BrokerConfig,
    ) -> None:
        self._offsets = members.offsets
        self._groups = members.coordinator
        self._retention_ms = config.offsets_retention_minutes * 60_000
        self._cache = cache
        self._zk_offsets = zk_offsets
        self._max_metadata = config.offset_metadata_max_bytes
        self._runtime = runtime

    def handle(
        self, header: RequestHeader, request: s.OffsetCommitRequest
    ) -> s.OffsetCommitResponse:
        if header.api_version == 0:
            return self._commit_to_zookeeper(request)
        return self._commit_to_kafka(header, request)

    def failure(
        self, header: RequestHeader, request: s.OffsetCommitRequest, code: int
    ) -> s.OffsetCommitResponse:
        code = _AS_COORDINATOR.get(code, code)
        asked = partitions_of(self._runtime, request)
        return self._response({key: code for key, _ in asked})

    def _commit_to_zookeeper(self, request: s.OffsetCommitRequest) -> s.OffsetCommitResponse:
        codes: dict[TopicPartition, int] = {}
        for key, commit in partitions_of(self._runtime, request):
            if key.topic not in self._cache:
                codes[key] = UnknownTopicOrPartitionError.code
            elif is_too_long(commit.metadata, self._max_metadata):
                codes[key] = OffsetMetadataTooLargeError.code
            else:
                codes[key] = self._zk_offsets.commit(request.group, key, commit.offset)
        return self._response(codes)

    def _check_group(self, header: RequestHeader, request: s.OffsetCommitRequest) -> int:
        """Whether the sender may commit for the group."""
        group = self._groups.groups.get(request.group)
        if header.api_version == 1 and (group is None or not group.members):
            return NO_ERROR  # as in 0.8.2.2, which knows no members
        code = self._offsets.check_coordinator(request.group)
        member = MemberId(request.member_id, request.group_instance_id)
        return code or self._groups.check_commit(request.group, request.generation, member)

    def _commit_to_kafka(
        self, header: RequestHeader, request: s.OffsetCommitRequest
    ) -> s.OffsetCommitResponse:
        is_original = header.api_version == 1
        if not is_original and not self._cache.announced.is_set():
            # Which topics exist is not known yet. The sender tries again.
            return self.failure(header, request, OffsetsLoadInProgressError.code)
        refused = self._check_group(header, request)
        codes: dict[TopicPartition, int] = {}
        entries: dict[GroupPartition, Committed] = {}
        existing: set[TopicPartition] = set()
        now = self._runtime.clock.millis()
        if request.retention_time_ms > 0:
            # Records have the time of the commit, not that of its expiry.
            now += request.retention_time_ms - self._retention_ms
        for key, commit in partitions_of(self._runtime, request):
            exists = self._cache.has_partition(*key)
            codes[key] = self._check_commit(refused, commit, exists or is_original)
            if codes[key]:
                continue
            if exists:
                existing.add(key)
            entries[GroupPartition(request.group, *key)] = Committed(
                commit.offset,
                commit.metadata or "",
                now if commit.timestamp == s.NO_TIMESTAMP else commit.timestamp,
            )
        if entries:
            code = self._offsets.commit(request.group, entries)
            told = _AS_COORDINATOR if is_original else AS_LATER_COORDINATOR
            code = told.get(code, code)
            for entry in entries:
                codes[TopicPartition(entry.topic, entry.partition)] = code
            # Partitions that were deleted while their commit waited for its acks keep no offset.
            deleted = {key for key in existing if not self._cache.has_partition(*key)}
            self._offsets.partitions_deleted(deleted)
        return self._response(codes)

    def _check_commit(self, refused: int, commit: s.OffsetCommitPartition, exists: bool) -> int:
        """The wire code for one partition; ``refused`` is that of the group."""
        if not exists:
            return UnknownTopicOrPartitionError.code
        if not refused and is_too_long(commit.metadata, self._max_metadata):
            return OffsetMetadataTooLargeError.code
        return _AS_COORDINATOR.get(refused, refused)

    def _response(self, codes: dict[TopicPartition, int]) -> s.OffsetCommitResponse:
        answers = (
            (key, s.OffsetCommitPartitionResponse(key.partition, code))
            for key, code in in_turns(self._runtime, codes.items())
        )
        return s.OffsetCommitResponse([s.OffsetCommitTopicResponse(*t) for t in by_topic(answers)])


class OffsetFetchApi:
    key = 9
    last_version = 7

    def __init__(
        self,
        runtime: Runtime,
        cache: MetadataCache,
        offsets: OffsetManager,
        zk_offsets: ZkOffsets,
        pauses: Pauses,
    ) -> None:
        self._runtime = runtime
        self._cache = cache
        self._offsets = offsets
        self._zk_offsets = zk_offsets
        self._pauses = pauses

    def handle(self, header: RequestHeader, request: s.OffsetFetchRequest) -> s.OffsetFetchResponse:
        group = request.group
        if header.api_version == 0:
            keys = self._asked(request)
            return self._response({key: self._from_zookeeper(group, key) for key in keys})
        code = self._offsets.check_coordinator(group)
        if self._pauses.may_be_deposed:
            code = NotCoordinatorForConsumerError.code
        if header.api_version == 1:
            keys = self._asked(request)
            return self._response({key: self._from_kafka(group, key, code) for key in keys})
        if code:
            return self.failure(header, request, code)
        if request.topics is None:
            keys = (TopicPartition(*key[1:]) for key in self._offsets.offsets_of(group))
        else:
            keys = self._asked(request)
        if request.require_stable:
            return self._response({key: self._stable(group, key) for key in keys})
        return self._response({key: self._stored(group, key) for key in keys})

    def failure(
        self, header: RequestHeader, request: s.OffsetFetchRequest, code: int
    ) -> s.OffsetFetchResponse:
        if header.api_version > 1:
            return s.OffsetFetchResponse([], error=code)
        return self._response(dict.fromkeys(self._asked(request), (NO_OFFSET, "", code)))

    def _asked(self, request: s.OffsetFetchRequest) -> Iterator[TopicPartition]:
        topics = request.topics or []
        keys = (TopicPartition(topic.topic, each) for topic in topics for each in topic.partitions)
        return turns(self._runtime, keys) if are_many(topics) else keys

    def _from_zookeeper(self, group: str, key: TopicPartition) -> tuple[int, str, int]:
        if key.topic not in self._cache:
            return NO_OFFSET, "", UnknownTopicOrPartitionError.code
        offset, code = self._zk_offsets.fetch(group, key)
        return offset, "", code

    def _from_kafka(self, group: str, key: TopicPartition, code: int) -> tuple[int, str, int]:
        """A broker that has just started may not know the partition yet. Its offset is told all the
        same, as consumers of 0.8 skip messages after code 3."""
        if code:
            return NO_OFFSET, "", code
        stored = self._stored(group, key)
        if stored[0] == NO_OFFSET and not self._cache.has_partition(*key):
            return NO_OFFSET, "", UnknownTopicOrPartitionError.code
        return stored

    def _stable(self, group: str, key: TopicPartition) -> tuple[int, str, int]:
        if self._offsets.is_unstable(GroupPartition(group, *key)):
            return NO_OFFSET, "", LaterCode.UNSTABLE_OFFSET_COMMIT
        return self._stored(group, key)

    def _stored(self, group: str, key: TopicPartition) -> tuple[int, str, int]:
        committed = self._offsets.fetch(GroupPartition(group, *key))
        if committed is None:
            return NO_OFFSET, "", NO_ERROR
        return committed.offset, committed.metadata, NO_ERROR

    def _response(self, found: dict[TopicPartition, tuple[int, str, int]]) -> s.OffsetFetchResponse:
        answers = (
            (key, s.OffsetFetchPartitionResponse(key.partition, *answer))
            for key, answer in in_turns(self._runtime, found.items())
        )
        return s.OffsetFetchResponse([s.OffsetFetchTopicResponse(*t) for t in by_topic(answers)])


class ConsumerMetadataApi:
    """Which broker coordinates a group, or the transactions of an id; asking for the first time
    creates the internal topic. ``topics``: name and number of partitions by type of the key."""

    key = 10
    last_version = 2

    def __init__(
        self,
        cache: MetadataCache,
        creator: TopicCreator,
        topics: Sequence[tuple[str, int]],
        reachable: Reachable,
    ) -> None:
        self._reachable = reachable
        self._cache = cache
        self._creator = creator
        self._topics = topics

    def handle(
        self, header: RequestHeader, request: s.ConsumerMetadataRequest
    ) -> s.ConsumerMetadataResponse:
        if not 0 <= request.key_type < len(self._topics):
            return s.ConsumerMetadataResponse(
                LaterCode.INVALID_REQUEST, -1, "", -1, 0, "No coordinator for keys of this type"
            )
        topic, partitions = self._topics[request.key_type]
        if topic not in self._cache:
            try:
                self._creator.create_on_demand(topic)
            except UnsupportedForMessageFormatError as error:
                return s.ConsumerMetadataResponse(error.code, -1, "", -1, 0, str(error))
        key = TopicPartition(topic, offsets_partition_for(request.group, partitions))
        leader = self._cache.leader_of(key, self._reachable.brokers())
        if leader is None:
            return self.failure(header, request, UnknownError.code)
        found = (leader.id, leader.host, leader.port)
        return s.ConsumerMetadataResponse(NO_ERROR, *found, error_message="NONE")

    def failure(
        self, header: RequestHeader, request: s.ConsumerMetadataRequest, code: int
    ) -> s.ConsumerMetadataResponse:
        return s.ConsumerMetadataResponse(ConsumerCoordinatorNotAvailableError.code, -1, "", -1)


class GroupStubApi:
    """JoinGroup and Heartbeat are stubs in 0.8.2.2: always -1."""

    last_version = 0

    def __init__(self, key: int, answer: JoinGroupStubResponse | HeartbeatResponse) -> None:
        self.key = key
        self._answer = answer

    def handle(self, header: RequestHeader, request: Message) -> Message:
        return self._answer

    def failure(self, header: RequestHeader, request: Message, code: int) -> Message:
        return self._answer


def stubs() -> list[Handler]:
    """The handlers of groups that cannot be made."""
    return [
        GroupStubApi(11, JoinGroupStubResponse(UnknownError.code, -1, "", [])),
        GroupStubApi(12, HeartbeatResponse(UnknownError.code)),
    ]
