"""The settings of the Scala-style producer, each declared once (kafka.producer.ProducerConfig)."""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.client.ids import check_id
from kafka08.client.security import ClientSecurity
from kafka08.errors import ConfigError
from kafka08.settings.settings import CODEC, LIST, SHORT, dotted, log_overrides, one_of, value_of

SYNC = "sync"
ASYNC = "async"
DEFAULT_ENCODER = "kafka.serializer.DefaultEncoder"
DEFAULT_PARTITIONER = "kafka.producer.DefaultPartitioner"


class ProducerConfig(ClientSecurity):
    """Producer settings by attribute; ``ProducerConfig.from_properties`` reads dotted keys."""

    metadata_broker_list: tuple[str, ...] = dotted(
        kind=LIST, doc="host:port of the brokers asked for metadata"
    )
    producer_type: str = dotted(
        SYNC,
        kind=one_of(SYNC, ASYNC),
        doc="sync: send returns when the brokers have answered; async: send queues",
    )
    request_required_acks: int = dotted(
        0,
        SHORT,
        -1,
        1,
        doc="0: no answer; 1: the leader has stored it; -1: the whole isr has stored it",
    )
    request_timeout_ms: int = dotted(10000, low=1, doc="how long acks may take")
    message_send_max_retries: int = dotted(3, doc="retries for messages that failed")
    retry_backoff_ms: int = dotted(100, doc="pause before metadata is refreshed for a retry")
    topic_metadata_refresh_interval_ms: int = dotted(
        600000, doc="age of metadata at which a send refreshes it; negative: only after failures"
    )
    compression_codec: int = dotted(
        0, CODEC, doc="none, gzip, snappy or lz4, or their numbers from 0"
    )
    compressed_topics: tuple[str, ...] = dotted(
        (), LIST, doc="the only topics to compress; empty: all of them"
    )
    partitioner_class: str = dotted(DEFAULT_PARTITIONER, doc="how a key chooses its partition")
    serializer_class: str = dotted(DEFAULT_ENCODER, doc="how a value becomes bytes")
    key_serializer_class: str = dotted(
        derive=value_of("serializer.class"),
        default_text="serializer.class",
        doc="how a key becomes bytes",
    )
    serializer_encoding: str = dotted("UTF8", doc="charset of the string encoder")
    send_buffer_bytes: int = dotted(102400, doc="send buffer of a broker connection")
    client_id: str = dotted("", doc="the client id sent to brokers")
    queue_buffering_max_ms: int = dotted(5000, doc="async: longest wait for a batch to fill")
    queue_buffering_max_messages: int = dotted(10000, low=1, doc="async: messages queued at most")
    queue_enqueue_timeout_ms: int = dotted(
        -1, doc="async: longest wait for room in the queue; 0: fail at once; negative: no limit"
    )
    batch_num_messages: int = dotted(200, doc="async: messages that make a batch")

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ProducerConfig:
        """As in ``Settings``; unknown keys are logged as warnings."""
        log_overrides(properties, cls.keys())
        return super().from_properties(properties)

    def check(self) -> None:
        check_id("client.id", self.client_id)
        if self.producer_type == ASYNC and (
            self.batch_num_messages > self.queue_buffering_max_messages
        ):
            raise ConfigError(
                f"batch.num.messages has value {self.batch_num_messages} which is above "
                f"queue.buffering.max.messages ({self.queue_buffering_max_messages})."
            )
