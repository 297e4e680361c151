"""Consumer instances in v2: subscriptions, assignments, positions, records, offsets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from kafka08.common import EARLIEST_TIME, LATEST_TIME, TopicPartition, validate_topic
from kafka08.consumer.filters import TopicFilter, Whitelist
from kafka08.errors import ConfigError, InvalidTopicError
from kafka08.network.channel import Connect
from kafka08.rest.calls import Call, Fields, RestAnswer, Route, allowed
from kafka08.rest.consumers import INSTANCE, Consumers, answer_type, commit_returned
from kafka08.rest.errors import bad_entity, illegal_state, partition_not_found
from kafka08.rest.instances import Instance
from kafka08.rest.media import FORMATS
from kafka08.rest.readers import AssignedReader
from kafka08.runtime import Runtime
from kafka08.security.users import OPERATOR

_V2 = (2,)
_MAX_OFFSET = 2**63 - 2
_MIXED = "Subscription to topics, partitions and pattern are mutually exclusive"


class ConsumersV2:
    """``consumers``: the handlers of v1, with the instances of both."""

    def __init__(self, consumers: Consumers, runtime: Runtime, channel: Connect) -> None:
        self._consumers = consumers
        self._cluster = consumers.cluster
        self._runtime = runtime
        self._channel = channel

    def routes(self) -> list[Route]:
        def route(
            method: str,
            path: str,
            name: str,
            handler: Callable[[Call], RestAnswer],
            versions: tuple[int, ...] = _V2,
            formats: tuple[str, ...] = (),
        ) -> Route:
            rule = f"{INSTANCE}/{path}"
            return Route(method, rule, f"consumer.{name}", handler, versions, OPERATOR, formats)

        return [
            route("POST", "subscription", "subscribe", self._subscribe),
            route("GET", "subscription", "subscription", self._subscription),
            route("DELETE", "subscription", "unsubscribe", self._unsubscribe),
            route("POST", "assignments", "assign", self._assign),
            route("GET", "assignments", "assignment", self._assignments),
            route("POST", "positions", "seek-to-offset", self._positions),
            route("POST", "positions/beginning", "seek-to-beginning", self._to_beginning),
            route("POST", "positions/end", "seek-to-end", self._to_end),
            route("GET", "records", "records.read", self._records, formats=FORMATS),
            route("POST", "offsets", "commit", self._commit, (1, 2)),
            route("GET", "offsets", "committed", self._committed),
        ]

    def _instance(self, call: Call) -> AbstractContextManager[Instance]:
        return self._consumers.instance(call, 2)

    # --- subscription

    def _subscribe(self, call: Call) -> RestAnswer:
        fields = call.fields("topics", "topic_pattern")
        pattern = fields.text("topic_pattern")
        if fields.value("topics") is not None and pattern is not None:
            raise illegal_state(_MIXED)
        topics = () if pattern is not None else _topics(fields)
        chosen = None if pattern is None else _filter(fields, pattern)
        only = self._consumers.config.consume_topics
        for topic in topics:
            allowed(topic, only, "rest.consume.topics")
        if only and chosen is not None:
            for topic in chosen.select(self._cluster.topics()):
                allowed(topic, only, "rest.consume.topics")
        with self._instance(call) as found:
            if isinstance(found.reader, AssignedReader):
                raise illegal_state(_MIXED)
            if found.reader is None or (found.topics, found.pattern) != (topics, pattern or ""):
                self._consumers.subscribe(found, topics, pattern or "")
        return RestAnswer(status=204)

    def _subscription(self, call: Call) -> RestAnswer:
        with self._instance(call) as found:
            topics = list(found.topics)
            if found.pattern:
                topics = Whitelist(found.pattern).select(self._cluster.topics())
            return RestAnswer({"topics": topics})

    def _unsubscribe(self, call: Call) -> RestAnswer:
        with self._instance(call) as found:
            found.unsubscribe()
        return RestAnswer(status=204)

    # --- assignment

    def _assign(self, call: Call) -> RestAnswer:
        partitions = _partitions(call)
        for tp in partitions:
            allowed(tp.topic, self._consumers.config.consume_topics, "rest.consume.topics")
            self._cluster.check_partition(tp)
        with self._instance(call) as found:
            if isinstance(found.reader, AssignedReader):
                found.reader.assign(partitions)
            elif found.reader is not None:
                raise illegal_state(_MIXED)
            else:
                reader = AssignedReader(
                    found.settings.config,
                    partitions,
                    found.stream_reader,
                    self._cluster.brokers,
                    self._runtime,
                    self._channel,
                )
                found.subscribe(reader, ())
        return RestAnswer(status=204)

    def _assignments(self, call: Call) -> RestAnswer:
        with self._instance(call) as found:
            owned = [] if found.reader is None else found.reader.assignment()
            return RestAnswer({"partitions": [tp._asdict() for tp in owned]})

    # --- positions

    def _positions(self, call: Call) -> RestAnswer:
        return self._seek(call, _offsets(call.fields("offsets")))

    def _to_beginning(self, call: Call) -> RestAnswer:
        return self._seek(call, dict.fromkeys(_partitions(call), EARLIEST_TIME))

    def _to_end(self, call: Call) -> RestAnswer:
        return self._seek(call, dict.fromkeys(_partitions(call), LATEST_TIME))

    def _seek(self, call: Call, offsets: Mapping[TopicPartition, int]) -> RestAnswer:
        """Negative offsets stand for the first one and for the end of the log."""
        with self._instance(call) as found:
            owned = set() if found.reader is None else set(found.reader.assignment())
            for tp in offsets:
                if tp not in owned:
                    raise illegal_state(f"No current assignment for partition {tp}")
            assert found.reader is not None
            named = {tp: offset for tp, offset in offsets.items() if offset < 0}
            found.reader.seek({**offsets, **self._cluster.offsets_at(named)})
        return RestAnswer(status=204)

    # --- records and offsets

    def _records(self, call: Call) -> RestAnswer:
        with self._consumers.reads, self._instance(call) as found:
            media = answer_type(call, found)
            if found.reader is None:
                raise illegal_state("Consumer is not subscribed to any topics or assigned any")
            return RestAnswer(self._consumers.read(call, found), media=media)

    def _commit(self, call: Call) -> RestAnswer:
        with self._consumers.instance(call, 0) as found:
            if found.settings.version == 1:
                return commit_returned(found)
            offsets = None
            if call.has_body:
                fields = call.fields("offsets")
                if "offsets" in fields:
                    # The number names the last message processed; the next one is stored.
                    offsets = {tp: last + 1 for tp, last in _offsets(fields).items()}
            if found.reader is not None:
                found.reader.commit(offsets)
        return RestAnswer([])

    def _committed(self, call: Call) -> RestAnswer:
        if not call.has_body:
            raise partition_not_found()
        partitions = _partitions(call)
        with self._instance(call) as found:
            stored = {} if found.reader is None else found.reader.committed(partitions)
        shown = [
            {**tp._asdict(), "offset": stored[tp], "metadata": ""}
            for tp in partitions
            if tp in stored
        ]
        return RestAnswer({"offsets": shown})


def _topics(fields: Fields) -> tuple[str, ...]:
    topics = [each if isinstance(each, str) else "" for each in fields.array("topics")]
    for topic in topics:
        try:
            validate_topic(topic)
        except InvalidTopicError as error:
            raise bad_entity(f"topics: {error}") from None
    return tuple(dict.fromkeys(topics))


def _filter(fields: Fields, pattern: str) -> TopicFilter:
    try:
        return Whitelist(fields.needed_text("topic_pattern"))
    except ConfigError as error:
        raise bad_entity(f"topic_pattern has value {pattern}: {error}") from None


def _partitions(call: Call) -> list[TopicPartition]:
    """``{"partitions": [{"topic", "partition"}]}``."""
    entries = call.fields("partitions").objects("partitions", "topic", "partition")
    return list(dict.fromkeys(map(_partition, entries)))


def _partition(fields: Fields) -> TopicPartition:
    return TopicPartition(fields.needed_text("topic"), fields.needed_integer("partition"))


def _offsets(fields: Fields) -> dict[TopicPartition, int]:
    """``{"offsets": [{"topic", "partition", "offset", "metadata"?}]}``; no use is made of
    metadata."""
    found = {}
    for entry in fields.objects("offsets", "topic", "partition", "offset", "metadata"):
        offset = entry.needed_integer("offset", 0, _MAX_OFFSET)
        entry.text("metadata")  # raises if it is not a string
        found[_partition(entry)] = offset
    return found
