"""APIs 19, 20, 32, 33, 37 of later releases: topics and their settings without ZooKeeper.

Not of 0.8.2.2, whose brokers close the connection over these keys. Message broker answers, by doing
in ZooKeeper what kafka-topics --zookeeper would do there; the controller acts on that as ever.
A request that created or removed something is answered once this broker's metadata shows it, or
with code 7 when the time given has passed: the change then still happens. Of brokers only
the settings in ``settings/dynamic`` can be changed. Without an authorizer these APIs allow nothing
that any peer on this port cannot do with APIs 4 to 6.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kafka08 import admin
from kafka08.cluster.metadata_cache import MetadataCache
from kafka08.common import TopicPartition, validate_topic
from kafka08.errors import NO_ERROR, RequestTimedOutError
from kafka08.placement import InvalidPartitionsError, assign_replicas
from kafka08.protocol import admin_schemas as a
from kafka08.protocol.schemas import Message, RequestHeader
from kafka08.runtime import Runtime
from kafka08.server.apis.described_configs import (
    ConfigSelection,
    broker_entries,
    dynamic_entries,
    topic_entries,
)
from kafka08.server.apis.outcomes import (
    AdminOutcome,
    InvalidRequestError,
    TopicDeletionDisabledError,
    tried,
)
from kafka08.server.quotas.throttle import MutationQuota
from kafka08.server.requests.long_work import in_turns
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.dynamic import DynamicBrokerSettings
from kafka08.settings.settings import Setting, parse_list
from kafka08.settings.topic import LogConfig
from zk import entities, entity_configs
from zk.client import ZkClient
from zk.errors import NodeExistsError

logger = logging.getLogger("kafka.server.KafkaApis")

_POLL_SECONDS = 0.05
# Beyond some such number a topic's node is larger than ZooKeeper takes; placing the partitions
# of a larger one would block this broker until its memory is used up.
_MAX_PARTITIONS = 50_000
_MAX_REPLICAS = 200_000  # of all partitions that are placed by hand
_FIRST_WITH_DELETION_DISABLED = 3  # of DeleteTopics; earlier versions get INVALID_REQUEST


def _outcome(name: str, act: Callable[[], object]) -> AdminOutcome:
    """Call ``act`` and return its outcome.

    A name that no topic can have, such as "t/partitions" or "", is refused: it would be the path of
    another node.
    """

    def checked() -> None:
        validate_topic(name)
        act()

    return tried(name, checked)


class _TopicChanges:
    """Calls that change topics, and wait until metadata shows the change."""

    def __init__(
        self,
        zk: ZkClient,
        config: BrokerConfig,
        cache: MetadataCache,
        runtime: Runtime,
        quota: MutationQuota,
    ) -> None:
        self._zk = zk
        self._config = config
        self._cache = cache
        self._runtime = runtime
        self._quota = quota

    def _answer(self, outcomes: Mapping[str, AdminOutcome], pause_ms: int) -> Message:
        """The API's answer. ``pause_ms``: what the quota causes."""
        raise NotImplementedError

    def failure(self, header: RequestHeader, request: Message, code: int) -> Message:
        names = [each if isinstance(each, str) else each.topic for each in request.topics]
        return self._answer(dict.fromkeys(names, AdminOutcome(code)), 0)

    def _changed(
        self,
        header: RequestHeader,
        acts: Mapping[str, Callable[[], int]],
        is_done: Callable[[str], bool],
        timeout_ms: int,
    ) -> Message:
        """Call the act of each topic, which returns how many partitions it made or deleted, and
        wait until its change ``is_done``."""
        partitions: list[int] = []

        def count(act: Callable[[], int]) -> None:
            partitions.append(act())

        outcomes = {
            topic: _outcome(topic, partial(count, act))
            for topic, act in in_turns(self._runtime, acts.items())
        }
        self._settle(outcomes, is_done, timeout_ms)
        return self._answer(outcomes, self._quota.record(header, sum(partitions)))

    def _settle(
        self, outcomes: dict[str, AdminOutcome], is_done: Callable[[str], bool], timeout_ms: int
    ) -> None:
        """Give each success that is not ``is_done`` in time the code of a timeout."""
        waiting = [name for name, outcome in outcomes.items() if outcome.code == NO_ERROR]
        deadline = self._runtime.clock.monotonic() + timeout_ms / 1000
        while waiting := [name for name in waiting if not is_done(name)]:
            if timeout_ms <= 0 or self._runtime.clock.monotonic() >= deadline:
                break
            self._runtime.sleep(_POLL_SECONDS)
        timed_out = AdminOutcome(
            RequestTimedOutError.code, "The change was accepted, but is not in effect yet"
        )
        outcomes.update(dict.fromkeys(waiting, timed_out))


class CreateTopicsApi(_TopicChanges):
    key = 19
    last_version = 4

    def handle(self, header: RequestHeader, request: a.CreateTopicsRequest) -> Message:
        validate_only = request.validate_only
        acts = _once(request.topics, lambda new: self._create(new, validate_only))

        def is_done(topic: str) -> bool:
            return validate_only or _has_leaders(self._cache, topic)

        return self._changed(header, acts, is_done, request.timeout_ms)

    def _create(self, new: a.NewTopic, validate_only: bool) -> int:
        assignment = _by_hand(new) if new.assignment else self._automatic(new)
        config = {entry.name: entry.value for entry in new.configs if entry.value is not None}
        if validate_only:
            admin.check_new_topic(self._zk, new.topic, assignment, config)
            return 0
        admin.create_topic_with_assignment(self._zk, new.topic, assignment, config)
        return len(assignment)

    def _automatic(self, new: a.NewTopic) -> dict[int, list[int]]:
        partitions, replicas = new.num_partitions, new.replication_factor
        if partitions == a.BROKER_DEFAULT:
            partitions = self._config.num_partitions
        if replicas == a.BROKER_DEFAULT:
            replicas = self._config.default_replication_factor
        _refuse_too_many(partitions)
        return assign_replicas(admin.live_places(self._zk), partitions, replicas)

    def _answer(self, outcomes: Mapping[str, AdminOutcome], pause_ms: int) -> Message:
        topics = [a.CreatedTopic(name, *outcome) for name, outcome in outcomes.items()]
        return a.CreateTopicsResponse(topics, pause_ms)


class DeleteTopicsApi(_TopicChanges):
    key = 20
    last_version = 3

    def handle(self, header: RequestHeader, request: a.DeleteTopicsRequest) -> Message:
        version = header.api_version
        acts = {topic: partial(self._delete, topic, version) for topic in request.topics}
        return self._changed(header, acts, self._is_gone, request.timeout_ms)

    def _delete(self, topic: str, version: int) -> int:
        if not self._config.delete_topic_enable:
            named = version >= _FIRST_WITH_DELETION_DISABLED
            error = TopicDeletionDisabledError if named else InvalidRequestError
            raise error("Topic deletion is disabled (delete.topic.enable)")
        if not admin.topic_exists(self._zk, topic):
            raise admin.UnknownTopicError(f"Topic {topic} does not exist")
        try:
            admin.delete_topic(self._zk, topic)
        except NodeExistsError:
            logger.info("Topic %s is already marked for deletion", topic)
            return 0
        return self._cache.partition_count(topic)

    def _is_gone(self, topic: str) -> bool:
        return topic not in self._cache and not admin.topic_exists(self._zk, topic)

    def _answer(self, outcomes: Mapping[str, AdminOutcome], pause_ms: int) -> Message:
        codes = [a.TopicErrorCode(name, outcome.code) for name, outcome in outcomes.items()]
        return a.DeleteTopicsResponse(codes, pause_ms)


class DescribeConfigsApi:
    key = 32
    last_version = 3

    def __init__(self, zk: ZkClient, config: BrokerConfig) -> None:
        self._zk = zk
        self._config = config

    def handle(
        self, header: RequestHeader, request: a.DescribeConfigsRequest
    ) -> a.DescribeConfigsResponse:
        extras = request.include_synonyms, request.include_documentation
        found = [
            self._describe(kind, name, ConfigSelection(keys, *extras))
            for kind, name, keys in request.resources
        ]
        return a.DescribeConfigsResponse(0, found)

    def _describe(self, kind: int, name: str, wanted: ConfigSelection) -> a.ResourceConfig:
        entries: list[a.ConfigEntry] = []
        if kind == a.BROKER_RESOURCE:
            outcome = tried(name, lambda: entries.extend(self._of_broker(name, wanted)))
        else:
            outcome = _outcome(name, lambda: entries.extend(self._of_topic(kind, name, wanted)))
        return a.ResourceConfig(*outcome, kind, name, entries)

    def _of_broker(self, name: str, wanted: ConfigSelection) -> list[a.ConfigEntry]:
        _refuse_other_brokers(name, self._config.broker_id)
        common = entity_configs.fetch(self._zk, f"{entities.BROKERS}/{entities.DEFAULT}")
        if not name:
            return dynamic_entries({}, common, wanted, only_set=True)
        own = entity_configs.fetch(self._zk, f"{entities.BROKERS}/{name}")
        return [*broker_entries(self._config, wanted), *dynamic_entries(own, common, wanted)]

    def _of_topic(self, kind: int, topic: str, wanted: ConfigSelection) -> list[a.ConfigEntry]:
        _refuse_other_resources(kind)
        if not admin.topic_exists(self._zk, topic):
            raise admin.UnknownTopicError(f"Topic {topic} does not exist")
        return topic_entries(self._config, admin.fetch_topic_config(self._zk, topic), wanted)

    def failure(
        self, header: RequestHeader, request: a.DescribeConfigsRequest, code: int
    ) -> a.DescribeConfigsResponse:
        return a.DescribeConfigsResponse(
            0, [a.ResourceConfig(code, None, asked[0], asked[1], []) for asked in request.resources]
        )


class AlterConfigsApi:
    """Replaces all overrides of a topic."""

    key = 33
    last_version = 1
    _response: type[Message] = a.AlterConfigsResponse

    def __init__(self, zk: ZkClient, broker_id: int) -> None:
        self._zk = zk
        self._broker_id = broker_id

    def handle(self, header: RequestHeader, request: Message) -> Message:
        outcomes = [self._outcome(asked, request.validate_only) for asked in request.resources]
        return self._answer(request, outcomes)

    def _outcome(self, asked: Message, validate_only: bool) -> AdminOutcome:
        name = asked.resource_name
        if asked.resource_type == a.BROKER_RESOURCE:
            return tried(name, lambda: self._alter_broker(asked, validate_only))
        return _outcome(name, partial(self._alter, asked, validate_only))

    def _alter_broker(self, asked: Message, validate_only: bool) -> None:
        """Change the settings of this broker, or, without a name, those of all brokers."""
        name = asked.resource_name
        _refuse_other_brokers(name, self._broker_id)
        entity = f"{entities.BROKERS}/{name or entities.DEFAULT}"
        changed = [entry.name for entry in asked.configs]

        def change(present: dict[str, str]) -> dict[str, str]:
            config = self._altered(asked, present, DynamicBrokerSettings.settings())
            DynamicBrokerSettings.validate(changed, config)
            return config

        if validate_only:
            change(entity_configs.fetch(self._zk, entity))
        else:
            entity_configs.alter(self._zk, entity, change)

    def failure(self, header: RequestHeader, request: Message, code: int) -> Message:
        return self._answer(request, [AdminOutcome(code)] * len(request.resources))

    def _answer(self, request: Message, outcomes: Sequence[AdminOutcome]) -> Message:
        pairs = zip(request.resources, outcomes, strict=True)
        return self._response(
            0, [a.ResourceError(*outcome, asked[0], asked[1]) for asked, outcome in pairs]
        )

    def _alter(self, asked: Message, validate_only: bool) -> None:
        _refuse_other_resources(asked.resource_type)
        present = admin.fetch_topic_config(self._zk, asked.resource_name)
        config = self._altered(asked, present, LogConfig.settings())
        LogConfig.validate(config)
        if not validate_only:
            admin.change_topic_config(self._zk, asked.resource_name, config)
        elif not admin.topic_exists(self._zk, asked.resource_name):
            raise admin.UnknownTopicError(f'Topic "{asked.resource_name}" does not exist.')

    def _altered(
        self, asked: Message, present: Mapping[str, str], settings: Mapping[str, Setting]
    ) -> dict[str, str]:
        """The settings as they are to be, of ``present`` ones; ``settings``: those there are."""
        return {entry.name: entry.value for entry in asked.configs if entry.value is not None}


class IncrementalAlterConfigsApi(AlterConfigsApi):
    """Changes the named overrides of a topic."""

    key = 44
    last_version = 0
    _response = a.IncrementalAlterConfigsResponse

    def _altered(
        self, asked: Message, present: Mapping[str, str], settings: Mapping[str, Setting]
    ) -> dict[str, str]:
        config = dict(present)
        lists = {each.key for each in settings.values() if each.kind.name == "list"}
        for change in asked.configs:
            if change.operation == a.DELETE_CONFIG:
                config.pop(change.name, None)
            elif change.value is None:
                raise InvalidRequestError(f"{change.name} is to be changed, and has no value")
            elif change.operation == a.SET_CONFIG:
                config[change.name] = change.value
            elif change.name in lists and change.operation in (a.APPEND_CONFIG, a.SUBTRACT_CONFIG):
                here, words = parse_list(config.get(change.name, "")), parse_list(change.value)
                kept = [word for word in here if word not in words]
                added = words if change.operation == a.APPEND_CONFIG else ()
                config[change.name] = ",".join([*kept, *added])
            else:
                raise InvalidRequestError(f"{change.name} can only be set or deleted")
        return config


class CreatePartitionsApi(_TopicChanges):
    key = 37
    last_version = 1

    def handle(self, header: RequestHeader, request: a.CreatePartitionsRequest) -> Message:
        validate_only = request.validate_only
        acts = _once(request.topics, lambda more: self._add(more, validate_only))
        counts = {more.topic: more.total_count for more in request.topics}

        def is_done(topic: str) -> bool:
            return validate_only or _has_leaders(self._cache, topic, counts[topic])

        return self._changed(header, acts, is_done, request.timeout_ms)

    def _add(self, more: a.MorePartitions, validate_only: bool) -> int:
        if more.topic in admin.FIXED_PARTITIONS:
            raise InvalidPartitionsError(admin.FIXED_PARTITIONS[more.topic])
        by_hand = more.assignment or ()
        _refuse_too_many(more.total_count, by_hand)
        new = admin.add_partitions(
            self._zk,
            more.topic,
            more.total_count,
            new_replicas=by_hand,
            validate_only=validate_only,
        )
        return 0 if validate_only else len(new)

    def _answer(self, outcomes: Mapping[str, AdminOutcome], pause_ms: int) -> Message:
        errors = [a.TopicError(name, *outcome) for name, outcome in outcomes.items()]
        return a.CreatePartitionsResponse(pause_ms, errors)


def _by_hand(new: a.NewTopic) -> dict[int, list[int]]:
    if (new.num_partitions, new.replication_factor) != (a.BROKER_DEFAULT, a.BROKER_DEFAULT):
        raise InvalidRequestError("Either an assignment or the counts, not both")
    _refuse_too_many(len(new.assignment), [entry.replicas for entry in new.assignment])
    assignment = {entry.partition: entry.replicas for entry in new.assignment}
    if sorted(entry.partition for entry in new.assignment) != list(range(len(new.assignment))):
        raise admin.InvalidAssignmentError("Partitions must be numbered from 0, without gaps")
    return assignment


def _has_leaders(cache: MetadataCache, topic: str, partitions: int = 1) -> bool:
    """Whether a topic has ``partitions`` or more, all of them with a leader."""
    count = cache.partition_count(topic)
    return count >= partitions and all(
        cache.leader_of(TopicPartition(topic, partition)) is not None for partition in range(count)
    )


def _once(topics: Sequence[Message], act: Callable[[Message], int]) -> dict[str, Callable[[], int]]:
    """The act of each topic. A topic that is named more than once is refused."""
    times = Counter(each.topic for each in topics)
    return {
        each.topic: partial(act if times[each.topic] == 1 else _refuse_repeated, each)
        for each in topics
    }


def _refuse_repeated(named: Message) -> int:
    raise InvalidRequestError(f"Topic {named.topic} is named more than once")


def _refuse_too_many(partitions: int, by_hand: Sequence[Sequence[int]] = ()) -> None:
    if partitions > _MAX_PARTITIONS:
        raise InvalidPartitionsError(
            f"{partitions} partitions are more than the {_MAX_PARTITIONS} a topic may have"
        )
    replicas = sum(map(len, by_hand))
    if replicas > _MAX_REPLICAS:
        raise admin.InvalidAssignmentError(
            f"{replicas} replicas are more than the {_MAX_REPLICAS} a topic may have"
        )


def _refuse_other_brokers(name: str, broker_id: int) -> None:
    if name not in ("", str(broker_id)):
        raise InvalidRequestError(
            f"Unexpected broker id, expected {broker_id} or empty string, but received {name}"
        )


def _refuse_other_resources(resource_type: int) -> None:
    if resource_type != a.TOPIC_RESOURCE:
        raise InvalidRequestError("Only topics and brokers have settings")
