"""Every metric of clients, declared with its names in JMX and in Prometheus.

Consumers' fetchers also have the ones of ``names`` that a broker's have.
"""

from __future__ import annotations

from kafka08.metrics.registry import Beans, Metric

# Consumers

_FETCHERS = Beans("kafka.consumer:type=ConsumerFetcherManager", "clientId")
MAX_LAG = _FETCHERS.gauge(
    "MaxLag",
    "Messages that are still to be fetched of the partition that is furthest behind.",
)
MIN_FETCH_RATE = _FETCHERS.gauge(
    "MinFetchRate",
    "Fetches per second of the slowest fetcher in the last minute; 0 without fetchers.",
)
_READ = Beans("kafka.consumer:type=ConsumerTopicMetrics", "clientId", "topic")
MESSAGES_READ = _READ.meter("MessagesPerSec", "Messages returned by streams.", "messages")
BYTES_READ = _READ.meter("BytesPerSec", "Bytes of message sets fetched.", "bytes")
_CONNECTOR = "kafka.consumer:type=ZookeeperConsumerConnector"
FETCH_QUEUE = Beans(_CONNECTOR, "clientId", "topic", "threadId").gauge(
    "FetchQueueSize",
    "Fetched chunks that wait in a stream; a stream of a filter has no topic.",
)
OWNED_PARTITIONS = Beans(_CONNECTOR, "clientId", "groupId", "topic").gauge(
    "OwnedPartitionsCount", "Partitions that this member owns."
)
_MEMBERS = Beans(_CONNECTOR, "clientId")
REBALANCES = _MEMBERS.timer("RebalanceRateAndTime", "Time (ms) of rebalances.", "rebalances")
KAFKA_COMMITS = _MEMBERS.meter("KafkaCommitsPerSec", "Offsets committed to brokers.", "commits")
ZOOKEEPER_COMMITS = _MEMBERS.meter(
    "ZooKeeperCommitsPerSec", "Offsets written to ZooKeeper.", "commits"
)

# The Scala-style producer

QUEUE_SIZE = Beans("kafka.producer.async:type=ProducerSendThread", "clientId").gauge(
    "ProducerQueueSize", "Messages that wait in an async producer."
)
_SENDS = Beans("kafka.producer:type=ProducerRequestMetrics", "clientId", "brokerHost", "brokerPort")
SEND_TIMES = _SENDS.timer(
    "ProducerRequestRateAndTimeMs",
    "Time (ms) of produce requests, the wait for followers included.",
    "requests",
)
SEND_SIZES = _SENDS.histogram("ProducerRequestSize", "Bytes of message sets in produce requests.")
_WRITTEN = Beans("kafka.producer:type=ProducerTopicMetrics", "clientId", "topic")
MESSAGES_SENT = _WRITTEN.meter(
    "MessagesPerSec", "Messages to send; a second try is not counted.", "messages"
)
BYTES_SENT = _WRITTEN.meter("BytesPerSec", "Bytes of their values.", "bytes")
DROPPED = _WRITTEN.meter(
    "DroppedMessagesPerSec",
    "Messages that a full queue refused, or that were unsent at the end.",
    "drops",
)
_STATS = Beans("kafka.producer:type=ProducerStats", "clientId")
SERIALIZATION_ERRORS = _STATS.meter(
    "SerializationErrorsPerSec", "Messages whose encoder raised an error.", "errors"
)
RESENDS = _STATS.meter("ResendsPerSec", "Further tries of a batch.", "resends")
FAILED_SENDS = _STATS.meter("FailedSendsPerSec", "Batches given up.", "failed sends")

# The mirror maker

_CHANNEL = Beans("kafka.tools:type=DataChannel")
CHANNEL_SIZE = _CHANNEL.histogram(
    "MirrorMaker-DataChannel-Size",
    "Messages that were read and not acknowledged by the target yet, each time one came or went.",
)
CHANNEL_PUT_WAITS = _CHANNEL.percent(
    "MirrorMaker-DataChannel-WaitOnPut",
    "Share of time in which streams waited because the most messages were in flight.",
    "percent",
)
CHANNEL_TAKE_WAITS = _CHANNEL.percent(
    "MirrorMaker-DataChannel-WaitOnTake",
    "Share of time in which no message was in flight.",
    "percent",
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
    beans = Beans(f"kafka.producer:type={kind}", *tags, labels=labels, sign=" ")
    return {name: beans.gauge(name, text) for name, text in texts.items()}


PRODUCER = _attributes("producer-metrics", _ALL, "client-id")
PRODUCER_TOPIC = _attributes("producer-topic-metrics", _TOPIC, "client-id", "topic")
PRODUCER_NODE = _attributes(
    "producer-node-metrics", {name: _ALL[name] for name in _NODE}, "client-id", "node-id"
)
