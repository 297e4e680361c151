"""Every metric of clients, declared with its names in JMX and in Prometheus.

Consumers' fetchers also have the ones of ``names`` that a broker's have.
"""

from __future__ import annotations

from kafka08.metrics.registry import GAUGE, HISTOGRAM, METER, PERCENT, TIMER, Metric, metric

_BROKER = ("clientId", "brokerHost", "brokerPort")
_FETCHERS = "kafka.consumer:type=ConsumerFetcherManager,name="
_READ = "kafka.consumer:type=ConsumerTopicMetrics,name="
_CONNECTOR = "kafka.consumer:type=ZookeeperConsumerConnector,name="
_WRITTEN = "kafka.producer:type=ProducerTopicMetrics,name="
_STATS = "kafka.producer:type=ProducerStats,name="
_CHANNEL = "kafka.tools:type=DataChannel,name=MirrorMaker-DataChannel-"
_REQUESTS = "kafka.producer:type=ProducerRequestMetrics,name="

# Consumers

MAX_LAG = metric(
    _FETCHERS + "MaxLag",
    GAUGE,
    "Messages that are still to be fetched of the partition that is furthest behind.",
    ("clientId",),
)
MIN_FETCH_RATE = metric(
    _FETCHERS + "MinFetchRate",
    GAUGE,
    "Fetches per second of the slowest fetcher in the last minute; 0 without fetchers.",
    ("clientId",),
)
MESSAGES_READ = metric(
    _READ + "MessagesPerSec",
    METER,
    "Messages returned by streams.",
    ("clientId", "topic"),
    unit="messages",
)
BYTES_READ = metric(
    _READ + "BytesPerSec",
    METER,
    "Bytes of message sets fetched.",
    ("clientId", "topic"),
    unit="bytes",
)
FETCH_QUEUE = metric(
    _CONNECTOR + "FetchQueueSize",
    GAUGE,
    "Fetched chunks that wait in a stream; a stream of a filter has no topic.",
    ("clientId", "topic", "threadId"),
)
OWNED_PARTITIONS = metric(
    _CONNECTOR + "OwnedPartitionsCount",
    GAUGE,
    "Partitions that this member owns.",
    ("clientId", "groupId", "topic"),
)
REBALANCES = metric(
    _CONNECTOR + "RebalanceRateAndTime",
    TIMER,
    "Time (ms) of rebalances.",
    ("clientId",),
    unit="rebalances",
)
KAFKA_COMMITS = metric(
    _CONNECTOR + "KafkaCommitsPerSec",
    METER,
    "Offsets committed to brokers.",
    ("clientId",),
    unit="commits",
)
ZOOKEEPER_COMMITS = metric(
    _CONNECTOR + "ZooKeeperCommitsPerSec",
    METER,
    "Offsets written to ZooKeeper.",
    ("clientId",),
    unit="commits",
)

# The Scala-style producer

QUEUE_SIZE = metric(
    "kafka.producer.async:type=ProducerSendThread,name=ProducerQueueSize",
    GAUGE,
    "Messages that wait in an async producer.",
    ("clientId",),
)
SEND_TIMES = metric(
    _REQUESTS + "ProducerRequestRateAndTimeMs",
    TIMER,
    "Time (ms) of produce requests, the wait for followers included.",
    _BROKER,
    unit="requests",
)
SEND_SIZES = metric(
    _REQUESTS + "ProducerRequestSize",
    HISTOGRAM,
    "Bytes of message sets in produce requests.",
    _BROKER,
)
MESSAGES_SENT = metric(
    _WRITTEN + "MessagesPerSec",
    METER,
    "Messages to send; a second try is not counted.",
    ("clientId", "topic"),
    unit="messages",
)
BYTES_SENT = metric(
    _WRITTEN + "BytesPerSec",
    METER,
    "Bytes of their values.",
    ("clientId", "topic"),
    unit="bytes",
)
DROPPED = metric(
    _WRITTEN + "DroppedMessagesPerSec",
    METER,
    "Messages that a full queue refused, or that were unsent at the end.",
    ("clientId", "topic"),
    unit="drops",
)


def _stat(bean: str, text: str, unit: str) -> Metric:
    return metric(_STATS + bean, METER, text, ("clientId",), unit=unit)


SERIALIZATION_ERRORS = _stat(
    "SerializationErrorsPerSec", "Messages whose encoder raised an error.", "errors"
)
RESENDS = _stat("ResendsPerSec", "Further tries of a batch.", "resends")
FAILED_SENDS = _stat("FailedSendsPerSec", "Batches given up.", "failed sends")

# The mirror maker

CHANNEL_SIZE = metric(
    _CHANNEL + "Size",
    HISTOGRAM,
    "Messages that were read and not acknowledged by the target yet, each time one came or went.",
)
CHANNEL_PUT_WAITS = metric(
    _CHANNEL + "WaitOnPut",
    PERCENT,
    "Share of time in which streams waited because the most messages were in flight.",
    unit="percent",
)
CHANNEL_TAKE_WAITS = metric(
    _CHANNEL + "WaitOnTake",
    PERCENT,
    "Share of time in which no message was in flight.",
    unit="percent",
)

# The Java-style producer: attributes of a bean; ``bean`` has the attribute after a blank.

_ALL = {
    "waiting-threads": "Tasks that wait for memory.",
    "buffer-total-bytes": "buffer.memory.",
    "buffer-available-bytes": "Memory that is free.",
    "bufferpool-wait-ratio": "Share of time in which a task waited for memory.",
    "batch-size-avg": "Bytes of a set for a partition.",
    "batch-size-max": "Bytes of the largest one.",
    "compression-rate-avg": "Bytes sent for a byte of records.",
    "record-queue-time-avg": "Time (ms) of batches until they were sent.",
    "record-queue-time-max": "The longest one.",
    "request-latency-avg": "Time (ms) of requests; none with acks=0.",
    "request-latency-max": "The longest one.",
    "record-send-rate": "Records sent per second.",
    "records-per-request-avg": "Records of a request.",
    "record-retry-rate": "Records sent again per second.",
    "record-error-rate": "Records that failed per second.",
    "record-size-max": "Bytes of a record: the largest mean of a batch.",
    "record-size-avg": "Bytes of a record.",
    "requests-in-flight": "Requests without an answer yet.",
    "metadata-age": "Seconds since metadata was read.",
    "connection-close-rate": "Connections closed per second.",
    "connection-creation-rate": "Connections made per second.",
    "connection-count": "Open connections.",
    "network-io-rate": "Requests and responses per second.",
    "outgoing-byte-rate": "Bytes of requests per second.",
    "request-rate": "Requests per second.",
    "request-size-avg": "Bytes of a request.",
    "request-size-max": "Bytes of the largest one.",
    "incoming-byte-rate": "Bytes of responses per second.",
    "response-rate": "Responses per second.",
    "select-rate": "Rounds per second of the tasks that write, one for each broker.",
    "io-wait-time-ns-avg": "Time (ns) of a round in which the task waited for work.",
    "io-wait-ratio": "Share of the time of these tasks in which they waited.",
    "io-time-ns-avg": "Time (ns) of a round in which the task made requests and wrote them.",
    "io-ratio": "Share of the time of these tasks in which they did so.",
}
_TOPIC = {
    "record-send-rate": "Records sent per second.",
    "byte-rate": "Bytes of sets sent per second.",
    "compression-rate": "Bytes sent for a byte of records.",
    "record-retry-rate": "Records sent again per second.",
    "record-error-rate": "Records that failed per second.",
}
_NODE = (
    "outgoing-byte-rate",
    "request-rate",
    "request-size-avg",
    "request-size-max",
    "incoming-byte-rate",
    "response-rate",
    "request-latency-avg",
    "request-latency-max",
)


def _attributes(kind: str, texts: dict[str, str], *tags: str) -> dict[str, Metric]:
    labels = tuple((tag.replace("-", "_"), f"{{{tag}}}") for tag in tags)
    return {
        name: metric(f"kafka.producer:type={kind} {name}", GAUGE, text, tags, labels=labels)
        for name, text in texts.items()
    }


PRODUCER = _attributes("producer-metrics", _ALL, "client-id")
PRODUCER_TOPIC = _attributes("producer-topic-metrics", _TOPIC, "client-id", "topic")
PRODUCER_NODE = _attributes(
    "producer-node-metrics", {name: _ALL[name] for name in _NODE}, "client-id", "node-id"
)
