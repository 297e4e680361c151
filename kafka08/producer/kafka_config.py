"""The settings of KafkaProducer, each declared once (o.a.k.clients.producer.ProducerConfig).

Names, defaults and ranges are those of 0.8.2.2. Added are ``request.timeout.ms``,
``delivery.timeout.ms`` and ``max.block.ms`` of later releases, which limit every wait,
``compressed.topics`` of the Scala producer, ``guarantee.message.order``, librdkafka's
``api.versions.request``, and of 0.11 ``transactional.id``, ``transaction.timeout.ms`` and
``enable.idempotence``, which changes the defaults of other settings as it does there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from kafka08.client.security import ClientSecurity
from kafka08.errors import ConfigError
from kafka08.message.compression import NONE, ZSTD
from kafka08.settings.settings import (
    BOOLEAN,
    COMPRESSION_CODECS,
    HIDDEN,
    INT,
    INT_MAX,
    LIST,
    LONG,
    STRING,
    dotted,
    is_secret,
    log_overrides,
    one_of,
)

logger = logging.getLogger("org.apache.kafka.clients.producer.ProducerConfig")

ACKS_ALL = -1
UNSET = -1
# Longer timeouts overflow in locks and sockets; they mean "never".
FOREVER_S = 2_000_000.0
_MOST_IN_FLIGHT = 5  # as later releases allow with enable.idempotence
_CODECS = {**COMPRESSION_CODECS, "zstd": ZSTD}


def seconds(ms: int) -> float:
    """A timeout for locks and sockets."""
    return min(ms / 1000, FOREVER_S)


def parse_acks(text: str) -> int:
    """Parse all, -1, 0, 1 or a number of replicas. Raises ConfigError."""
    if text == "all":
        return ACKS_ALL
    if text.lstrip("-").isdecimal() and -1 <= int(text) <= 2**15 - 1:
        return int(text)
    raise ConfigError(f"acks has value {text} which is not all, -1, 0, 1 or a number of replicas.")


class KafkaProducerConfig(ClientSecurity):
    """Settings by attribute; ``of`` accepts dotted names and Python names."""

    bootstrap_servers: tuple[str, ...] = dotted(
        kind=LIST, doc="host:port of brokers to learn the cluster from"
    )
    transactional_id: str | None = dotted(
        None,
        STRING,
        doc="the name under which this producer writes in transactions; a producer with the same "
        "name takes the place of one before it",
    )
    transaction_timeout_ms: int = dotted(
        60000, low=1, doc="how long a transaction may take before its coordinator aborts it"
    )
    enable_idempotence: bool = dotted(
        kind=BOOLEAN,
        derive=lambda settings: settings.transactional_id is not None,
        default_text="true with transactional.id, else false",
        doc="nothing is stored twice, whatever is tried again",
    )
    acks: str = dotted(
        kind=STRING,
        derive=lambda settings: "all" if settings.enable_idempotence else "1",
        default_text="1; all with enable.idempotence",
        doc="0: no answer; 1: the leader has stored it; all or -1: the whole isr has stored it",
    )
    retries: int = dotted(
        kind=INT,
        low=0,
        derive=lambda settings: INT_MAX if settings.enable_idempotence else 0,
        default_text="0; 2147483647 with enable.idempotence",
        doc="retries after temporary errors",
    )
    retry_backoff_ms: int = dotted(100, LONG, 0, doc="pause before a retry")
    guarantee_message_order: bool = dotted(
        True,
        doc="with retries: one request at a time for a partition, so that messages stay in order",
    )
    batch_size: int = dotted(16384, low=0, doc="bytes of a partition's records sent at once")
    linger_ms: int = dotted(0, LONG, 0, doc="how long a batch waits to fill")
    buffer_memory: int = dotted(32 << 20, LONG, 0, doc="bytes that may wait to be acknowledged")
    block_on_buffer_full: bool = dotted(
        True, doc="send waits for room; false: send raises an error"
    )
    max_block_ms: int = dotted(
        UNSET,
        LONG,
        UNSET,
        doc="how long send may wait for metadata or room; -1: metadata.fetch.timeout.ms for "
        "metadata, no limit for room",
    )
    max_request_size: int = dotted(1 << 20, low=0, doc="bytes of a request, and of a record")
    max_in_flight_requests_per_connection: int = dotted(
        5, low=1, doc="requests sent to a broker before the first of them is answered"
    )
    compression_type: str = dotted(
        "none",
        kind=one_of(*_CODECS),
        doc="how batches are compressed; zstd needs api.versions.request",
    )
    compressed_topics: tuple[str, ...] = dotted(
        (), LIST, doc="the only topics to compress; empty: all of them"
    )
    timeout_ms: int = dotted(30000, low=0, doc="how long the broker waits for its replicas")
    request_timeout_ms: int = dotted(
        kind=INT,
        low=1,
        derive=lambda settings: settings.timeout_ms + 10000,
        default_text="timeout.ms + 10000",
        doc="how long a broker may take to answer before its connection is closed",
    )
    delivery_timeout_ms: int = dotted(
        120000, low=1, doc="how long a record may wait to be sent, retries included"
    )
    metadata_fetch_timeout_ms: int = dotted(
        60000, LONG, 0, doc="how long send waits for the metadata of a new topic"
    )
    metadata_max_age_ms: int = dotted(300000, LONG, 0, doc="age at which metadata is refreshed")
    reconnect_backoff_ms: int = dotted(10, LONG, 0, doc="pause between attempts to connect")
    send_buffer_bytes: int = dotted(131072, low=0, doc="send buffer of a connection")
    receive_buffer_bytes: int = dotted(32768, low=0, doc="receive buffer of a connection")
    api_versions_request: bool = dotted(
        kind=BOOLEAN,
        derive=lambda settings: settings.enable_idempotence,
        default_text="true with enable.idempotence, else false",
        doc="send timestamps and headers: for clusters in which every broker answers ApiVersions",
    )
    client_id: str = dotted("", doc="the name this client gives brokers")
    metric_reporters: tuple[str, ...] = dotted(
        (), LIST, doc="not used: metrics() returns the metrics"
    )
    metrics_sample_window_ms: int = dotted(30000, LONG, 0, doc="duration of one sample")
    metrics_num_samples: int = dotted(2, low=1, doc="number of samples for rates")

    def check(self) -> None:
        acks = parse_acks(self.acks)
        if self.transactional_id is not None:
            self._check_transactional(self.transactional_id)
        if self.enable_idempotence:
            self._check_idempotent(acks)
        if self.compression_type == "zstd" and not self.api_versions_request:
            raise ConfigError("compression.type has value zstd, which needs api.versions.request.")

    def _check_transactional(self, id_: str) -> None:
        if not id_:
            raise ConfigError("transactional.id has an empty value.")
        if not self.enable_idempotence:
            raise ConfigError(
                "enable.idempotence has value false, and transactional.id needs it true."
            )

    def _check_idempotent(self, acks: int) -> None:
        most = _MOST_IN_FLIGHT
        for is_wrong, key, value, needed in (
            (acks != ACKS_ALL, "acks", self.acks, "all"),
            (not self.retries, "retries", self.retries, "more"),
            (
                self.max_in_flight_requests_per_connection > most,
                "max.in.flight.requests.per.connection",
                self.max_in_flight_requests_per_connection,
                f"at most {most}",
            ),
            (not self.guarantee_message_order, "guarantee.message.order", "false", "true"),
            (not self.api_versions_request, "api.versions.request", "false", "true"),
        ):
            if is_wrong:
                which = "transactional.id" if self.transactional_id else "enable.idempotence=true"
                raise ConfigError(f"{key} has value {value}, and {which} needs {needed}.")

    @property
    def block_s(self) -> float:
        """How many seconds a call may wait, other than for room."""
        block_ms = self.max_block_ms
        return seconds(block_ms if block_ms >= 0 else self.metadata_fetch_timeout_ms)

    def codec_of(self, topic: str) -> int:
        """The codec of ``message.compression`` for batches of a topic."""
        only = self.compressed_topics
        return _CODECS[self.compression_type] if not only or topic in only else NONE

    @classmethod
    def known(cls, properties: Mapping[str, str]) -> dict[str, str]:
        """The properties that are settings of this producer. Logs all, and warns of the others."""
        known = cls.keys()
        log_overrides(properties, known)
        return {key: value for key, value in properties.items() if key in known}

    @classmethod
    def of(cls, properties: Mapping[str, object]) -> KafkaProducerConfig:
        """Create from dotted names or attribute names, with texts or Python values; None is unset.

        Raises ConfigError, also for an attribute name that does not exist.
        """
        texts = {}
        keys = cls.keys()
        for name, value in properties.items():
            known = cls.settings().get(name)
            if known is None and name not in keys and "." not in name:
                raise ConfigError(f"KafkaProducer has no setting {name}")
            if value is not None:
                texts[known.key if known else name] = _text(value)
        return cls.from_properties(texts)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value)


def warn_of(given: Mapping[str, object], config: KafkaProducerConfig) -> None:
    """Log which of the ``given`` settings have no effect."""
    known = config.keys()
    for name, value in given.items():
        if "." in name and name not in known:
            logger.warning(
                "The configuration %s = %s was supplied but isn't a known config.",
                name,
                HIDDEN if is_secret(name) else value,
            )
    if config.metric_reporters:
        logger.warning(
            "metric.reporters names JVM classes, which are not run: use metrics() instead"
        )
