"""Consumer instances over HTTP: what v1 and v2 have in common, and the endpoints of v1."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote, urlsplit

from kafka08.client.ids import check_id
from kafka08.consumer.config import LARGEST, SMALLEST, ConsumerConfig
from kafka08.consumer.filters import Whitelist
from kafka08.errors import ConfigError
from kafka08.message.consumed import Message
from kafka08.rest.calls import Call, Fields, RestAnswer, Route, Row, allowed
from kafka08.rest.cluster import Cluster
from kafka08.rest.config import RestConfig, consumer_properties
from kafka08.rest.errors import (
    RestError,
    already_subscribed,
    bad_consumer_config,
    bad_entity,
    config_out_of_bounds,
    format_mismatch,
    topic_not_found,
)
from kafka08.rest.formats import shown
from kafka08.rest.instances import Instance, Instances, InstanceSettings
from kafka08.rest.media import AVRO, BINARY, FORMATS, typed
from kafka08.rest.readers import STREAM_TIMEOUT_MS, Connecting, GroupReader, Limits
from kafka08.runtime import Runtime
from kafka08.security.users import OPERATOR

BOTH = (1, 2)
INSTANCE = "/consumers/<group>/instances/<instance>"
_FIELDS = ("id", "name", "format", "auto.offset.reset", "auto.commit.enable")
_FIELDS_2 = ("fetch.min.bytes", "consumer.request.timeout.ms", "isolation.level")
_MAX_MIN_BYTES = 10_000_000
_MAX_NAME = 255
_RESETS_2 = {"earliest": SMALLEST, "latest": LARGEST}
_MAX_BYTES = 2**63 - 1


class Reads:
    """Bounds the reads that wait at a time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._now = 0

    def __enter__(self) -> None:
        if self._now >= self._limit:
            raise RestError(429, 429, "Too many reads at a time (consumer.threads).")
        self._now += 1

    def __exit__(self, *exc_info: object) -> None:
        self._now -= 1


@dataclass
class Consumers:
    """The handlers of /consumers that both versions have, and those of v1.

    ``properties``: the settings of the proxy's file, some of which are for consumers.
    """

    config: RestConfig
    properties: Mapping[str, str]
    cluster: Cluster
    instances: Instances
    runtime: Runtime
    connect: Connecting

    def __post_init__(self) -> None:
        self.reads = Reads(self.config.consumer_threads)

    def routes(self) -> list[Route]:
        return [
            Route("POST", "/consumers/<group>", "consumer.create", self._create, BOTH, OPERATOR),
            Route("DELETE", INSTANCE, "consumer.delete", self._delete, BOTH, OPERATOR),
            Route(
                "GET",
                f"{INSTANCE}/topics/<topic>",
                "consumer.topic.read",
                self._read_topic,
                (1,),
                OPERATOR,
                FORMATS,
            ),
        ]

    # --- instances

    def _create(self, call: Call) -> RestAnswer:
        version = call.media.version or call.accept.version or 1
        group = call.args["group"]
        name, settings = self._settings(call, version, group)
        made = self.instances.create(group, name, settings)
        body = {"instance_id": made.name, "base_uri": self._base_uri(call, made.name)}
        return RestAnswer(body, media=typed(version))

    def _base_uri(self, call: Call, name: str) -> str:
        parts = urlsplit(call.request.base_url)
        if self.config.host_name:
            port = f":{parts.port}" if parts.port else ""
            parts = parts._replace(netloc=f"{self.config.host_name}{port}")
        return f"{parts.geturl().rstrip('/')}/instances/{quote(name, safe='')}"

    def _settings(
        self, call: Call, version: int, group: str
    ) -> tuple[str | None, InstanceSettings]:
        """The name asked for, if any, and the rest. Raises RestError 422."""
        names = _FIELDS + (_FIELDS_2 if version == 2 else ())
        fields = call.fields(*names) if call.has_body else Fields({}, ())
        given: dict[str, str] = {}
        consumer_id = fields.text("id") or None
        name = consumer_id or fields.text("name") or None
        data_format = (fields.text("format") or BINARY).lower()
        if consumer_id is not None:
            given["consumer.id"] = consumer_id
        if "auto.offset.reset" in fields:
            reset = fields.text("auto.offset.reset") or ""
            given["auto.offset.reset"] = _RESETS_2.get(reset, reset) if version == 2 else reset
        if "isolation.level" in fields:
            given["isolation.level"] = fields.text("isolation.level") or ""
        if "auto.commit.enable" in fields:
            given["auto.commit.enable"] = str(fields.value("auto.commit.enable")).lower()
        min_bytes = _setting(fields, "fetch.min.bytes") or 1
        if not -1 <= min_bytes <= _MAX_MIN_BYTES:
            raise config_out_of_bounds(f"fetch.min.bytes must be from -1 to {_MAX_MIN_BYTES}")
        timeout_ms = _setting(fields, "consumer.request.timeout.ms") or 0
        if timeout_ms < 0:
            raise config_out_of_bounds("consumer.request.timeout.ms must be at least 0")
        if data_format == AVRO:
            raise bad_consumer_config("format avro needs a registry of schemas, which is not here")
        if data_format not in FORMATS:
            raise bad_entity("Invalid format type.")
        if name is not None and len(name) > _MAX_NAME:
            raise bad_entity(f"name is longer than {_MAX_NAME} characters")
        return name, InstanceSettings(
            version,
            data_format,
            self._consumer_config(given, version, group),
            max(min_bytes, 1),
            timeout_ms,
        )

    def _consumer_config(
        self, given: Mapping[str, str], version: int, group: str
    ) -> ConsumerConfig:
        auto_commit = {"auto.commit.enable": "true" if version == 2 else "false"}
        most = str(min(self.config.consumer_request_max_bytes, 2**31 - 1))
        fixed = {
            "group.id": group,
            "zookeeper.connect": self.config.zookeeper_connect,
            "zookeeper.session.timeout.ms": str(self.config.zookeeper_session_timeout_ms),
            "consumer.timeout.ms": str(STREAM_TIMEOUT_MS),
            "fetch.message.limit.bytes": most,
        }
        try:
            check_id("group", group)
            return ConsumerConfig.from_properties(
                {**auto_commit, **consumer_properties(self.properties), **given, **fixed}
            )
        except ConfigError as error:
            raise bad_consumer_config(str(error)) from None

    def instance(self, call: Call, version: int) -> AbstractContextManager[Instance]:
        """The one that the path names, for this request. ``version``: that of the path, 0: any."""
        return self.instances.use(call.args["group"], call.args["instance"], version)

    def _delete(self, call: Call) -> RestAnswer:
        self.instances.delete(call.args["group"], call.args["instance"])
        return RestAnswer(status=204)

    # --- v1

    def _read_topic(self, call: Call) -> RestAnswer:
        topic = call.args["topic"]
        with self.reads, self.instance(call, 1) as found:
            media = answer_type(call, found)
            if found.topics and found.topics != (topic,):
                raise already_subscribed()
            if not found.topics:
                allowed(topic, self.config.consume_topics, "rest.consume.topics")
                if not self.cluster.has_topic(topic):
                    raise topic_not_found()
                self.subscribe(found, (topic,))
            return RestAnswer(self.read(call, found), media=media)

    def subscribe(self, instance: Instance, topics: tuple[str, ...], pattern: str = "") -> None:
        """To ``topics``, or to those that a pattern selects."""
        reader = GroupReader(
            instance.settings.config,
            Whitelist(pattern) if pattern else topics,
            instance.stream_reader,
            self.cluster.zk,
            self.runtime,
            self.connect,
        )
        instance.subscribe(reader, topics, pattern)

    def read(self, call: Call, instance: Instance) -> list[Row]:
        """The next records of an instance that reads something."""
        config, settings = self.config, instance.settings
        most_ms = settings.timeout_ms or config.consumer_request_timeout_ms
        asked_ms = call.number("timeout", 0, 2**31 - 1) if settings.version == 2 else None
        timeout_ms = most_ms if asked_ms is None else min(asked_ms, most_ms)
        asked = call.number("max_bytes", -_MAX_BYTES, _MAX_BYTES)
        most = config.consumer_request_max_bytes
        limit = most if asked is None or asked < 0 else min(asked, most)
        assert instance.reader is not None
        limits = Limits(timeout_ms / 1000, limit, settings.min_bytes)
        found = instance.reader.read(limits, partial(_shown, settings))
        instance.note(found)
        return [each.record for each in found]


def commit_returned(instance: Instance) -> RestAnswer:
    """Of v1: store what was returned."""
    if instance.reader is not None:
        instance.reader.commit()
        owned = set(instance.reader.assignment())
        instance.consumed = {tp: last for tp, last in instance.consumed.items() if tp in owned}
        instance.committed = dict(instance.consumed)
    return RestAnswer(
        [
            {**tp._asdict(), "consumed": last, "committed": instance.committed.get(tp, -1)}
            for tp, last in sorted(instance.consumed.items())
        ],
        media=typed(1),
    )


def _shown(settings: InstanceSettings, message: Message) -> Row:
    record = shown(settings.format, message)
    return {"topic": message.topic, **record} if settings.version == 2 else record


def answer_type(call: Call, instance: Instance) -> str:
    """The type of records that a client accepts. Raises RestError 40601 for another format."""
    wanted = instance.settings.format
    if call.accept.format and call.accept.format != wanted:
        raise format_mismatch()
    return call.accept.name


def _setting(fields: Fields, key: str) -> int | None:
    """A number of the settings, also as a string. Raises RestError 40001."""
    value = fields.value(key)
    if value is None:
        return None
    try:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError
        return int(value)
    except ValueError:
        raise config_out_of_bounds(f"{key} is not an integer") from None
