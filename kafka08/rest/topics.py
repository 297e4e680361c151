"""Brokers, topics and partitions, and records written to them: what v1 and v2 have in common."""

from __future__ import annotations

from typing import Any

from kafka08.common import TopicPartition, validate_topic
from kafka08.errors import InvalidTopicError
from kafka08.rest.bodies import Fields
from kafka08.rest.calls import OPERATOR, Answer, Call, Route, allowed
from kafka08.rest.cluster import Cluster
from kafka08.rest.config import RestConfig
from kafka08.rest.errors import bad_entity
from kafka08.rest.formats import encoded, shown
from kafka08.rest.media import BINARY, FORMATS
from kafka08.rest.offset_reader import OffsetReader
from kafka08.rest.producing import Producers, Record

BOTH = (1, 2)
_PARTITION = "<int(signed=True):partition>"
# Of Avro, which needs a registry of schemas: known, and without effect.
_SCHEMAS = ("key_schema", "key_schema_id", "value_schema", "value_schema_id")
_MAX_OFFSET = 2**63 - 1
_MAX_COUNT = 2**31 - 1


class Topics:
    """The handlers of /, /brokers and /topics."""

    def __init__(
        self, config: RestConfig, cluster: Cluster, producers: Producers, offsets: OffsetReader
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._producers = producers
        self._offsets = offsets

    def routes(self) -> list[Route]:
        one = f"/topics/<topic>/partitions/{_PARTITION}"
        return [
            Route("GET", "/", "root.get", self._root, BOTH),
            Route("POST", "/", "root.post", self._root, BOTH),
            Route("GET", "/brokers", "brokers.list", self._brokers, BOTH),
            Route("GET", "/topics", "topics.list", self._topics, BOTH),
            Route("GET", "/topics/<topic>", "topic.get", self._topic, BOTH),
            Route("POST", "/topics/<topic>", "topic.produce", self._produce, BOTH, OPERATOR),
            Route("GET", "/topics/<topic>/partitions", "partitions.list", self._partitions, BOTH),
            Route("GET", one, "partition.get", self._partition, BOTH),
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

    def _root(self, call: Call) -> Answer:
        return Answer({})

    def _brokers(self, call: Call) -> Answer:
        return Answer({"brokers": self._cluster.broker_ids()})

    def _topics(self, call: Call) -> Answer:
        return Answer(self._cluster.topics())

    def _topic(self, call: Call) -> Answer:
        return Answer(self._cluster.topic(call.args["topic"]))

    def _partitions(self, call: Call) -> Answer:
        return Answer(self._cluster.partitions(call.args["topic"]))

    def _partition(self, call: Call) -> Answer:
        return Answer(self._cluster.partition(_partition_of(call)))

    def _end_offsets(self, call: Call) -> Answer:
        first, end = self._cluster.end_offsets(_partition_of(call))
        return Answer({"beginning_offset": first, "end_offset": end})

    def _messages(self, call: Call) -> Answer:
        tp = _partition_of(call)
        allowed(tp.topic, self._config.consume_topics, "rest.consume.topics")
        offset = call.number("offset", 0, _MAX_OFFSET) or 0
        count = call.number("count", 0, _MAX_COUNT)
        messages = self._offsets.read(tp, offset, 1 if count is None else count)
        name = call.accept.format or BINARY
        return Answer([shown(name, message) for message in messages])

    # --- writing

    def _produce(self, call: Call) -> Answer:
        topic = call.args["topic"]
        records = _records(call, with_partition=True)
        return self._write(topic, records)

    def _produce_to(self, call: Call) -> Answer:
        tp = _partition_of(call)
        records = _records(call, with_partition=False)
        if self._cluster.has_topic(tp.topic):
            self._cluster.check_partition(tp)
        return self._write(tp.topic, [each._replace(partition=tp.partition) for each in records])

    def _write(self, topic: str, records: list[Record]) -> Answer:
        allowed(topic, self._config.produce_topics, "rest.produce.topics")
        try:
            validate_topic(topic)
        except InvalidTopicError as error:
            raise bad_entity(str(error)) from None
        offsets = self._producers.write(topic, records)
        return Answer({"offsets": offsets, "key_schema_id": None, "value_schema_id": None})


def _partition_of(call: Call) -> TopicPartition:
    return TopicPartition(call.args["topic"], call.args["partition"])


def _records(call: Call, *, with_partition: bool) -> list[Record]:
    """The records of a body, as they are stored. Raises RestError 400, 422."""
    fields = call.fields("records", *_SCHEMAS)
    name = call.media.format or BINARY
    known = ("key", "value", "partition") if with_partition else ("key", "value")
    return [
        _record(Fields(each, known, f"records[{index}]"), f"records[{index}]", name)
        for index, each in enumerate(fields.array("records"))
    ]


def _record(fields: Fields, where: str, name: str) -> Record:
    key: Any = fields.value("key")
    value: Any = fields.value("value")
    return Record(
        encoded(name, key, f"{where}.key"),
        encoded(name, value, f"{where}.value"),
        fields.integer("partition"),
    )
