"""Every metric of clients, declared with its names in JMX and in Prometheus.

Consumers' fetchers also have the ones of ``names`` that a broker's have.
"""

from __future__ import annotations

from kafka08.metrics.registry import PERCENT, Metric, gauge, histogram, meter, metric, timer

_BROKER = ("clientId", "brokerHost", "brokerPort")
_FETCHERS = "kafka.consumer:type=ConsumerFetcherManager,name="
_READ = "kafka.consumer:type=ConsumerTopicMetrics,name="
_CONNECTOR = "kafka.consumer:type=ZookeeperConsumerConnector,name="
_WRITTEN = "kafka.producer:type=ProducerTopicMetrics,name="
_STATS = "kafka.producer:type=ProducerStats,name="
_CHANNEL = "kafka.tools:type=DataChannel,name=MirrorMaker-DataChannel-"
_REQUESTS = "kafka.producer:type=ProducerRequestMetrics,name="

# Consumers

MAX_LAG = gauge(
    _FETCHERS + "MaxLag",
    "Messages that are still to be fetched of the partition that is furthest behind.",
    "clientId",
)
MIN_FETCH_RATE = gauge(
    _FETCHERS + "MinFetchRate",
    "Fetches per second of the slowest fetcher in the last minute; 0 without fetchers.",
    "clientId",
)
MESSAGES_READ = meter(
    _READ + "MessagesPerSec", "Messages returned by streams.", "messages", "clientId", "topic"
)
BYTES_READ = meter(
    _READ + "BytesPerSec", "Bytes of message sets fetched.", "bytes", "clientId", "topic"
)
FETCH_QUEUE = gauge(
    _CONNECTOR + "FetchQueueSize",
    "Fetched chunks that wait in a stream; a stream of a filter has no topic.",
    "clientId",
    "topic",
    "threadId",
)
OWNED_PARTITIONS = gauge(
    _CONNECTOR + "OwnedPartitionsCount",
    "Partitions that this member owns.",
    "clientId",
    "groupId",
    "topic",
)
REBALANCES = timer(
    _CONNECTOR + "RebalanceRateAndTime", "Time (ms) of rebalances.", "rebalances", "clientId"
)
KAFKA_COMMITS = meter(
    _CONNECTOR + "KafkaCommitsPerSec", "Offsets committed to brokers.", "commits", "clientId"
)
ZOOKEEPER_COMMITS = meter(
    _CONNECTOR + "ZooKeeperCommitsPerSec", "Offsets written to ZooKeeper.", "commits", "clientId"
)

# The Scala-style producer

QUEUE_SIZE = gauge(
    "kafka.producer.async:type=ProducerSendThread,name=ProducerQueueSize",
    "Messages that wait in an async producer.",
    "clientId",
)
SEND_TIMES = timer(
    _REQUESTS + "ProducerRequestRateAndTimeMs",
    "Time (ms) of produce requests, the wait for followers included.",
    "requests",
    *_BROKER,
)
SEND_SIZES = histogram(
    _REQUESTS + "ProducerRequestSize", "Bytes of message sets in produce requests.", *_BROKER
)
MESSAGES_SENT = meter(
    _WRITTEN + "MessagesPerSec",
    "Messages to send; a second try is not counted.",
    "messages",
    "clientId",
    "topic",
)
BYTES_SENT = meter(_WRITTEN + "BytesPerSec", "Bytes of their values.", "bytes", "clientId", "topic")
DROPPED = meter(
    _WRITTEN + "DroppedMessagesPerSec",
    "Messages that a full queue refused, or that were unsent at the end.",
    "drops",
    "clientId",
    "topic",
)


def _stat(bean: str, text: str, unit: str) -> Metric:
    return meter(_STATS + bean, text, unit, "clientId")


SERIALIZATION_ERRORS = _stat(
    "SerializationErrorsPerSec", "Messages whose encoder raised an error.", "errors"
)
RESENDS = _stat("ResendsPerSec", "Further tries of a batch.", "resends")
FAILED_SENDS = _stat("FailedSendsPerSec", "Batches given up.", "failed sends")

# The mirror maker

CHANNEL_SIZE = histogram(
    _CHANNEL + "Size",
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
        name: gauge(f"kafka.producer:type={kind} {name}", text, *tags, labels=labels)
        for name, text in texts.items()
    }


PRODUCER = _attributes("producer-metrics", _ALL, "client-id")
PRODUCER_TOPIC = _attributes("producer-topic-metrics", _TOPIC, "client-id", "topic")
PRODUCER_NODE = _attributes(
    "producer-node-metrics", {name: _ALL[name] for name in _NODE}, "client-id", "node-id"
)
