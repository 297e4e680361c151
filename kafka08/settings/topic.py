"""The settings of topics, each declared once: ``LogConfig`` mirrors kafka.log.LogConfig."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from kafka08.errors import ConfigError
from kafka08.settings.broker import LOG_APPEND_TIME, BrokerConfig
from kafka08.settings.later_topics import LaterTopicSettings
from kafka08.settings.settings import (
    BOOLEAN_IN_ANY_CASE,
    INT,
    LONG,
    LONG_MAX,
    THROTTLED,
    Settings,
    UnknownConfigError,
    dotted,
    message_format,
)

_DELETE, _COMPACT, _BOTH = "delete", "compact", "compact,delete"

# A topic without a setting of its own follows the broker's.
BROKER_KEYS = {
    "segment.bytes": "log.segment.bytes",
    "segment.ms": "log.roll.ms",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.index.bytes": "log.index.size.max.bytes",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "max.message.bytes": "message.max.bytes",
    "index.interval.bytes": "log.index.interval.bytes",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "cleanup.policy": "log.cleanup.policy",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "min.insync.replicas": "min.insync.replicas",
    "compressed.sets": "log.compressed.sets",
    "message.format.version": "log.message.format.version",
    "message.timestamp.type": "log.message.timestamp.type",
    "message.timestamp.difference.max.ms": "log.message.timestamp.difference.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.downconversion.enable": "log.message.downconversion.enable",
    "message.downconversion.isolation.level": "log.message.downconversion.isolation.level",
}


def _cleanup_policy(value: str, otherwise: str) -> str:
    """The policies in a list, in any order; ``otherwise`` for words that are not policies."""
    words = {each.strip() for each in value.lower().split(",")}
    if words == {_DELETE, _COMPACT}:
        return _BOTH
    return words.pop() if words in ({_DELETE}, {_COMPACT}) else otherwise


def _as_broker(key: str) -> Any:
    """The setting that is the same for a topic as for a broker, where it has ``key``."""
    own = BrokerConfig.settings()[key.replace(".", "_")]
    return own._replace(key="", doc=f"Not in 0.8.2.2; see `{key}`.")


def _names(replicas: tuple[str, ...], partition: int, broker_id: int) -> bool:
    return replicas == ("*",) or f"{partition}:{broker_id}" in replicas


class LogConfig(Settings):
    """The settings of one topic's logs: the broker's, unless the topic overrides them.

    ``cleanup_policy`` is always ``delete``, ``compact`` or ``compact,delete``. Values of a topic
    are only parsed, not checked for a range, as in the original: an original tool may have written
    any value.
    """

    segment_bytes: int = dotted(1073741824, doc="Size at which a segment is closed.")
    segment_ms: int = dotted(604800000, LONG, doc="Age at which a segment is closed.")
    segment_jitter_ms: int = dotted(0, LONG, doc="Largest random amount taken off that age.")
    segment_index_bytes: int = dotted(10485760, doc="Size of a segment's index file.")
    flush_messages: int = dotted(
        LONG_MAX, LONG, doc="Messages a log may take before it is flushed."
    )
    flush_ms: int = dotted(LONG_MAX, LONG, doc="How long a message may wait to be flushed.")
    retention_bytes: int = dotted(
        -1,
        LONG,
        doc="Size a partition may grow to before old segments are deleted; negative: no limit.",
    )
    retention_ms: int = dotted(
        604800000,
        LONG,
        doc="Age at which a segment is deleted, the newest one too: the time since its newest "
        "message, or without timestamps since its last write. Negative: never.",
    )
    max_message_bytes: int = dotted(
        1000012, doc="Largest log entry accepted, its 12 bytes of offset and size included."
    )
    index_interval_bytes: int = dotted(4096, doc="Bytes of log between two index entries.")
    # A topic's value must parse as an int, yet the broker's default may be any long.
    file_delete_delay_ms: int = dotted(
        60000,
        LONG._replace(parse=INT.parse),
        doc="How long a deleted segment's files stay on disk.",
    )
    delete_retention_ms: int = dotted(
        86400000, LONG, doc="How long a compacted log keeps the markers of deleted keys."
    )
    min_cleanable_dirty_ratio: float = dotted(
        0.5, doc="A log is compacted once its uncleaned share is above this."
    )
    min_compaction_lag_ms: int = _as_broker("log.cleaner.min.compaction.lag.ms")
    max_compaction_lag_ms: int = dotted(
        LONG_MAX,
        LONG,
        low=1,
        doc="Not in 0.8.2.2; see `log.cleaner.max.compaction.lag.ms`. The active segment is closed "
        "at that age too.",
    )
    cleanup_policy: str = dotted(
        _DELETE,
        doc="`delete` deletes old segments, `compact,delete` also keeps only the last message of "
        "each key; any other word only does that.",
    )
    unclean_leader_election_enable: bool = dotted(
        True,
        BOOLEAN_IN_ANY_CASE,
        doc="Let a replica outside the isr lead when no other is alive, at the price of data.",
    )
    min_insync_replicas: int = dotted(
        1, doc="Replicas that must be in sync for a produce with acks -1; at least 1."
    )
    compressed_sets: str = _as_broker("log.compressed.sets")
    message_format_version: str = _as_broker("log.message.format.version")
    message_timestamp_type: str = _as_broker("log.message.timestamp.type")
    message_timestamp_difference_max_ms: int = _as_broker("log.message.timestamp.difference.max.ms")
    message_timestamp_before_max_ms: int = _as_broker("log.message.timestamp.before.max.ms")
    message_timestamp_after_max_ms: int = _as_broker("log.message.timestamp.after.max.ms")
    message_downconversion_enable: bool = dotted(
        True,
        BOOLEAN_IN_ANY_CASE,
        doc="Not in 0.8.2.2; see `log.message.downconversion.enable`.",
    )
    message_downconversion_isolation_level: str = _as_broker(
        "log.message.downconversion.isolation.level"
    )

    leader_replication_throttled_replicas: tuple[str, ...] = dotted(
        (),
        THROTTLED,
        doc="Not in 0.8.2.2. Replicas, as `partition:broker`, or `*` for all, that send no faster "
        "than `leader.replication.throttled.rate` of their broker to followers outside the isr.",
    )
    follower_replication_throttled_replicas: tuple[str, ...] = dotted(
        (),
        THROTTLED,
        doc="Not in 0.8.2.2. Replicas, as `partition:broker`, or `*` for all, that fetch no faster "
        "than `follower.replication.throttled.rate` of their broker while they are behind.",
    )

    @cached_property
    def message_format(self) -> int:
        """The newest message format to store: 0, 1 or 2."""
        return message_format(self.message_format_version)

    @cached_property
    def stamps(self) -> bool:
        """Whether messages get the time at which they are appended."""
        return self.message_timestamp_type == LOG_APPEND_TIME

    @cached_property
    def timestamp_limits(self) -> tuple[int, int] | None:
        """How far timestamps may lie in the past and in the future (ms); None without a limit."""
        most = self.message_timestamp_difference_max_ms
        before = min(self.message_timestamp_before_max_ms, most)
        after = min(self.message_timestamp_after_max_ms, most)
        return None if before == after == LONG_MAX else (before, after)

    def throttles_leader(self, partition: int, broker_id: int) -> bool:
        """Whether this replica's rate as leader is limited while followers are behind."""
        return _names(self.leader_replication_throttled_replicas, partition, broker_id)

    def throttles_follower(self, partition: int, broker_id: int) -> bool:
        """Whether this replica's rate as follower is limited while it is behind."""
        return _names(self.follower_replication_throttled_replicas, partition, broker_id)

    @cached_property
    def compact(self) -> bool:
        """Whether only the last message of each key is kept."""
        return self.cleanup_policy != _DELETE

    @cached_property
    def deletes(self) -> bool:
        """Whether old segments are deleted by age and by size."""
        return self.cleanup_policy != _COMPACT

    @classmethod
    def from_broker(cls, broker: BrokerConfig) -> LogConfig:
        """The logs' defaults on a broker.

        Unlike KafkaServer.createLogManager, min.insync.replicas is passed on (KAFKA-2114).
        """
        values = {
            topic_key.replace(".", "_"): getattr(broker, broker_key.replace(".", "_"))
            for topic_key, broker_key in BROKER_KEYS.items()
        }
        values["cleanup_policy"] = _cleanup_policy(broker.log_cleanup_policy, _DELETE)
        return cls(**values)

    def override(self, properties: Mapping[str, str]) -> LogConfig:
        """This config with a topic's own values, or itself if there are none that it knows.

        Raises NumberFormatError in the JVM's words for a value that cannot be parsed.
        """
        changes = {
            attribute: described.kind.parse(properties[described.key])
            for attribute, described in self.settings().items()
            if described.key in properties
        }
        if "cleanup_policy" in changes:
            changes["cleanup_policy"] = _cleanup_policy(changes["cleanup_policy"], _COMPACT)
        return self.replace(**changes) if changes else self

    @classmethod
    def validate(cls, properties: Mapping[str, str]) -> None:
        """Check a topic's settings before a tool writes them; errors are LogConfig.validate's."""
        for name in properties:
            if name not in TOPIC_KEYS:
                raise UnknownConfigError(name)
        LaterTopicSettings.refuse_others(properties)
        min_isr = properties.get("min.insync.replicas")
        if min_isr is not None and INT.parse(min_isr) < 1:
            raise ConfigError(
                f"Wrong value {min_isr} of min.insync.replicas in topic configuration;  "
                "Valid values are at least 1"
            )
        checked = cls().override(properties)
        words = [each.strip() for each in properties.get("cleanup.policy", "").lower().split(",")]
        unknown = [word for word in words if word not in (_DELETE, _COMPACT)]
        if len(words) > 1 and unknown:  # 0.8.2.2 takes any single word
            raise ConfigError(
                f"Invalid value {unknown[0]} for configuration cleanup.policy: String must be one "
                f"of: {_COMPACT}, {_DELETE}"
            )
        for attribute in ("min_compaction_lag_ms", "max_compaction_lag_ms"):
            cls.settings()[attribute].check(getattr(checked, attribute))
        least, most = checked.min_compaction_lag_ms, checked.max_compaction_lag_ms
        if least > most:
            raise ConfigError(
                f"conflict topic config setting min.compaction.lag.ms ({least}) > "
                f"max.compaction.lag.ms ({most})"
            )


TOPIC_KEYS = LogConfig.keys() | LaterTopicSettings.keys()
"""The settings that a topic may have, those without an effect too."""
