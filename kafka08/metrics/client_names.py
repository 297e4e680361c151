"""Every metric of clients, declared with its names in JMX and in Prometheus.

Consumers' fetchers also have the ones of ``names`` that a broker's have.
"""

from __future__ import annotations

from kafka08.metrics.registry import GAUGE, HISTOGRAM, METER, PERCENT, TIMER, Metric

_BROKER = ("clientId", "brokerHost", "brokerPort")
_FETCHERS = "kafka.consumer:type=ConsumerFetcherManager,name="
_READ = "kafka.consumer:type=ConsumerTopicMetrics,name="
_CONNECTOR = "kafka.consumer:type=ZookeeperConsumerConnector,name="
_WRITTEN = "kafka.producer:type=ProducerTopicMetrics,name="
_STATS = "kafka.producer:type=ProducerStats,name="
_CHANNEL = "kafka.tools:type=DataChannel,name=MirrorMaker-DataChannel-"
_REQUESTS = "kafka.producer:type=ProducerRequestMetrics,name="

# Consumers

MAX_LAG = Metric(
    _FETCHERS + "MaxLag",
    GAUGE,
    "kafka_consumer_consumerfetchermanager_maxlag",
    "Messages that are still to be fetched of the partition that is furthest behind.",
    ("clientId",),
)
MIN_FETCH_RATE = Metric(
    _FETCHERS + "MinFetchRate",
    GAUGE,
    "kafka_consumer_consumerfetchermanager_minfetchrate",
    "Fetches per second of the slowest fetcher in the last minute; 0 without fetchers.",
    ("clientId",),
)
MESSAGES_READ = Metric(
    _READ + "MessagesPerSec",
    METER,
    "kafka_consumer_consumertopicmetrics_messages_total",
    "Messages returned by streams.",
    ("clientId", "topic"),
    unit="messages",
)
BYTES_READ = Metric(
    _READ + "BytesPerSec",
    METER,
    "kafka_consumer_consumertopicmetrics_bytes_total",
    "Bytes of message sets fetched.",
    ("clientId", "topic"),
    unit="bytes",
)
FETCH_QUEUE = Metric(
    _CONNECTOR + "FetchQueueSize",
    GAUGE,
    "kafka_consumer_zookeeperconsumerconnector_fetchqueuesize",
    "Fetched chunks that wait in a stream; a stream of a filter has no topic.",
    ("clientId", "topic", "threadId"),
)
OWNED_PARTITIONS = Metric(
    _CONNECTOR + "OwnedPartitionsCount",
    GAUGE,
    "kafka_consumer_zookeeperconsumerconnector_ownedpartitionscount",
    "Partitions that this member owns.",
    ("clientId", "groupId", "topic"),
)
REBALANCES = Metric(
    _CONNECTOR + "RebalanceRateAndTime",
    TIMER,
    "kafka_consumer_zookeeperconsumerconnector_rebalancerateandtime",
    "Time (ms) of rebalances.",
    ("clientId",),
    unit="rebalances",
)
KAFKA_COMMITS = Metric(
    _CONNECTOR + "KafkaCommitsPerSec",
    METER,
    "kafka_consumer_zookeeperconsumerconnector_kafkacommits_total",
    "Offsets committed to brokers.",
    ("clientId",),
    unit="commits",
)
ZOOKEEPER_COMMITS = Metric(
    _CONNECTOR + "ZooKeeperCommitsPerSec",
    METER,
    "kafka_consumer_zookeeperconsumerconnector_zookeepercommits_total",
    "Offsets written to ZooKeeper.",
    ("clientId",),
    unit="commits",
)

# The Scala-style producer

QUEUE_SIZE = Metric(
    "kafka.producer.async:type=ProducerSendThread,name=ProducerQueueSize",
    GAUGE,
    "kafka_producer_async_producersendthread_producerqueuesize",
    "Messages that wait in an async producer.",
    ("clientId",),
)
SEND_TIMES = Metric(
    _REQUESTS + "ProducerRequestRateAndTimeMs",
    TIMER,
    "kafka_producer_producerrequestmetrics_producerrequestrateandtimems",
    "Time (ms) of produce requests, the wait for followers included.",
    _BROKER,
    unit="requests",
)
SEND_SIZES = Metric(
    _REQUESTS + "ProducerRequestSize",
    HISTOGRAM,
    "kafka_producer_producerrequestmetrics_producerrequestsize",
    "Bytes of message sets in produce requests.",
    _BROKER,
)
MESSAGES_SENT = Metric(
    _WRITTEN + "MessagesPerSec",
    METER,
    "kafka_producer_producertopicmetrics_messages_total",
    "Messages to send; a second try is not counted.",
    ("clientId", "topic"),
    unit="messages",
)
BYTES_SENT = Metric(
    _WRITTEN + "BytesPerSec",
    METER,
    "kafka_producer_producertopicmetrics_bytes_total",
    "Bytes of their values.",
    ("clientId", "topic"),
    unit="bytes",
)
DROPPED = Metric(
    _WRITTEN + "DroppedMessagesPerSec",
    METER,
    "kafka_producer_producertopicmetrics_droppedmessages_total",
    "Messages that a full queue refused, or that were unsent at the end.",
    ("clientId", "topic"),
    unit="drops",
)


def _stat(bean: str, name: str, text: str, unit: str) -> Metric:
    full = f"kafka_producer_producerstats_{name}_total"
    return Metric(_STATS + bean, METER, full, text, ("clientId",), unit=unit)


SERIALIZATION_ERRORS = _stat(
    "SerializationErrorsPerSec",
    "serializationerrors",
    "Messages whose encoder raised an error.",
    "errors",
)
RESENDS = _stat("ResendsPerSec", "resends", "Further tries of a batch.", "resends")
FAILED_SENDS = _stat("FailedSendsPerSec", "failedsends", "Batches given up.", "failed sends")

# The mirror maker

CHANNEL_SIZE = Metric(
    _CHANNEL + "Size",
    HISTOGRAM,
    "kafka_tools_datachannel_mirrormaker_datachannel_size",
    "Messages that were read and not acknowledged by the target yet, each time one came or went.",
)
CHANNEL_PUT_WAITS = Metric(
    _CHANNEL + "WaitOnPut",
    PERCENT,
    "kafka_tools_datachannel_mirrormaker_datachannel_waitonput_percent",
    "Share of time in which streams waited because the most messages were in flight.",
    unit="percent",
)
CHANNEL_TAKE_WAITS = Metric(
    _CHANNEL + "WaitOnTake",
    PERCENT,
    "kafka_tools_datachannel_mirrormaker_datachannel_waitontake_percent",
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
    made = {}
    for attribute, text in texts.items():
        name = f"kafka_producer_{kind}_{attribute}".replace("-", "_")
        labels = tuple((tag.replace("-", "_"), f"{{{tag}}}") for tag in tags)
        bean = f"kafka.producer:type={kind} {attribute}"
        made[attribute] = Metric(bean, GAUGE, name, text, tags, labels=labels)
    return made


PRODUCER = _attributes("producer-metrics", _ALL, "client-id")
PRODUCER_TOPIC = _attributes("producer-topic-metrics", _TOPIC, "client-id", "topic")
PRODUCER_NODE = _attributes(
    "producer-node-metrics", {name: _ALL[name] for name in _NODE}, "client-id", "node-id"
)
