"""Brokers, topics and partitions, and records written to them: what v1 and v2 have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafka08.common import TopicPartition, validate_topic
from kafka08.errors import InvalidTopicError
from kafka08.rest.calls import Call, RestAnswer, Route, allowed
from kafka08.rest.cluster import Cluster
from kafka08.rest.config import RestConfig
from kafka08.rest.errors import bad_entity
from kafka08.rest.formats import encoded, shown
from kafka08.rest.media import BINARY, FORMATS
from kafka08.rest.producing import Record, SharedProducer
from kafka08.rest.readers import OffsetReader
from kafka08.security.users import OPERATOR

BOTH = (1, 2)
_PARTITION = "<int(signed=True):partition>"
# Of Avro, which needs a registry of schemas: known, and without effect.
_SCHEMAS = ("key_schema", "key_schema_id", "value_schema", "value_schema_id")
_MAX_OFFSET = 2**63 - 1
_MAX_COUNT = 2**31 - 1


@dataclass(frozen=True)
class Topics:
    """The handlers of /, /brokers and /topics."""

    config: RestConfig
    cluster: Cluster
    producer: SharedProducer
    offsets: OffsetReader

    def routes(self) -> list[Route]:
        def get(rule: str, name: str, shown: Callable[[Call], object]) -> Route:
            return Route("GET", rule, name, lambda call: RestAnswer(shown(call)), BOTH)

        cluster, topic = self.cluster, "/topics/<topic>"
        one = f"{topic}/partitions/{_PARTITION}"
        return [
            get("/", "root.get", lambda call: {}),
            Route("POST", "/", "root.post", lambda call: RestAnswer({}), BOTH),
            get("/brokers", "brokers.list", lambda call: {"brokers": cluster.broker_ids()}),
            get("/topics", "topics.list", lambda call: cluster.topics()),
            get(topic, "topic.get", lambda call: cluster.topic(call.args["topic"])),
            Route("POST", topic, "topic.produce", self._produce, BOTH, OPERATOR),
            get(
                f"{topic}/partitions",
                "partitions.list",
                lambda call: cluster.partitions(call.args["topic"]),
            ),
            get(one, "partition.get", lambda call: cluster.partition(_partition_of(call))),
            Route("POST", one, "partition.produce", self._produce_to, BOTH, OPERATOR),
            Route("GET", f"{one}/offsets", "partition.offsets", self._end_offsets, (2,)),
            Route(
                "GET",
                f"{one}/messages",
                "partition.consume",
                self._messages,
                (1,),
                formats=FORMATS,
            ),
        ]

    # --- reading

    def _end_offsets(self, call: Call) -> RestAnswer:
        first, end = self.cluster.end_offsets(_partition_of(call))
        return RestAnswer({"beginning_offset": first, "end_offset": end})

    def _messages(self, call: Call) -> RestAnswer:
        tp = _partition_of(call)
        allowed(tp.topic, self.config.consume_topics, "rest.consume.topics")
        offset = call.number("offset", 0, _MAX_OFFSET) or 0
        count = call.number("count", 0, _MAX_COUNT)
        messages = self.offsets.read(tp, offset, 1 if count is None else count)
        name = call.accept.format or BINARY
        return RestAnswer([shown(name, message) for message in messages])

    # --- writing

    def _produce(self, call: Call) -> RestAnswer:
        return self._write(call.args["topic"], _records(call, with_partition=True))

    def _produce_to(self, call: Call) -> RestAnswer:
        tp = _partition_of(call)
        records = _records(call, with_partition=False)
        if self.cluster.has_topic(tp.topic):
            self.cluster.check_partition(tp)
        return self._write(tp.topic, [each._replace(partition=tp.partition) for each in records])

    def _write(self, topic: str, records: list[Record]) -> RestAnswer:
        allowed(topic, self.config.produce_topics, "rest.produce.topics")
        try:
            validate_topic(topic)
        except InvalidTopicError as error:
            raise bad_entity(str(error)) from None
        offsets = self.producer.write(topic, records)
        return RestAnswer({"offsets": offsets, "key_schema_id": None, "value_schema_id": None})


def _partition_of(call: Call) -> TopicPartition:
    return TopicPartition(call.args["topic"], call.args["partition"])


def _records(call: Call, *, with_partition: bool) -> list[Record]:
    """The records of a body, as they are stored. Raises RestError 400, 422."""
    fields = call.fields("records", *_SCHEMAS)
    name = call.media.format or BINARY
    known = ("key", "value", "partition") if with_partition else ("key", "value")
    return [
        Record(
            encoded(name, each.value("key"), each.path("key")),
            encoded(name, each.value("value"), each.path("value")),
            each.integer("partition"),
        )
        for each in fields.objects("records", *known)
    ]
