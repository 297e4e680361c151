"""Every metric of a broker, declared with its names in JMX and in Prometheus."""

from __future__ import annotations

from kafka08.metrics.registry import GAUGE, HISTOGRAM, METER, PERCENT, TEXT, TIMER, Metric, metric

_PARTITION = ("topic", "partition")
_FETCHER = ("clientId", "brokerHost", "brokerPort")
_REQUESTS = "kafka.network:type=RequestMetrics,name="
_TOPICS = "kafka.server:type=BrokerTopicMetrics,name="
_FETCHES = "kafka.consumer:type=FetchRequestAndResponseMetrics,name="

VERSION = metric(
    "kafka.common:type=AppInfo,name=Version",
    TEXT,
    "The version of kafka08.",
)
UNDER_REPLICATED = metric(
    "kafka.cluster:type=Partition,name=UnderReplicated",
    GAUGE,
    "1 on the leader while the isr is shorter than the list of replicas; 0 on followers.",
    _PARTITION,
)
ACTIVE_CONTROLLER = metric(
    "kafka.controller:type=KafkaController,name=ActiveControllerCount",
    GAUGE,
    "1 on the controller; the sum over all brokers must be 1.",
)
OFFLINE_PARTITIONS = metric(
    "kafka.controller:type=KafkaController,name=OfflinePartitionsCount",
    GAUGE,
    "Partitions whose leader is not alive; 0 on brokers that are not the controller.",
)
PREFERRED_IMBALANCE = metric(
    "kafka.controller:type=KafkaController,name=PreferredReplicaImbalanceCount",
    GAUGE,
    "Partitions not led by their first replica; 0 on brokers that are not the controller.",
)
ELECTIONS = metric(
    "kafka.controller:type=ControllerStats,name=LeaderElectionRateAndTimeMs",
    TIMER,
    "Time (ms) to act on brokers that came or went, elections included.",
    unit="elections",
)
UNCLEAN_ELECTIONS = metric(
    "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
    METER,
    "Leaders chosen from outside the isr: acknowledged messages may be lost.",
    unit="elections",
)
LOG_SEGMENTS = metric(
    "kafka.log:type=Log,name=NumLogSegments",
    GAUGE,
    "Segments of the log.",
    _PARTITION,
)
LOG_START = metric(
    "kafka.log:type=Log,name=LogStartOffset",
    GAUGE,
    "The first offset that is still there.",
    _PARTITION,
)
LOG_END = metric(
    "kafka.log:type=Log,name=LogEndOffset",
    GAUGE,
    "The next offset to be written.",
    _PARTITION,
)
LOG_SIZE = metric(
    "kafka.log:type=Log,name=Size",
    GAUGE,
    "Bytes of all segments, without their indexes.",
    _PARTITION,
)
CLEANER_BUFFER = metric(
    "kafka.log:type=LogCleaner,name=max-buffer-utilization-percent",
    GAUGE,
    "The fullest map of keys of the last cleaning of any cleaner.",
)
CLEANER_RECOPY = metric(
    "kafka.log:type=LogCleaner,name=cleaner-recopy-percent",
    GAUGE,
    "Bytes written for bytes read in the last cleanings.",
)
CLEANER_TIME = metric(
    "kafka.log:type=LogCleaner,name=max-clean-time-secs",
    GAUGE,
    "The longest of the last cleanings; 0 before the first.",
)
CLEANER_DIRTY = metric(
    "kafka.log:type=LogCleanerManager,name=max-dirty-percent",
    GAUGE,
    "The dirty share of the dirtiest log at the last choice.",
)
CLEANER_IO = metric(
    "kafka.utils:type=Throttler,name=cleaner-io",
    METER,
    "Bytes read and written by finished cleanings.",
    unit="bytes",
)
LOG_FLUSHES = metric(
    "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
    TIMER,
    "Time (ms) to sync a log.",
    unit="flushes",
)
REQUEST_QUEUE = metric(
    "kafka.network:type=RequestChannel,name=RequestQueueSize",
    GAUGE,
    "Requests that were read and wait to be handled.",
)
RESPONSE_QUEUE = metric(
    "kafka.network:type=RequestChannel,name=ResponseQueueSize",
    GAUGE,
    "Answers that wait to be sent. The series of a processor is the one event loop's.",
    ("processor",),
)
REQUESTS = metric(
    _REQUESTS + "RequestsPerSec",
    METER,
    "Requests answered, by kind; Fetch is the sum of FetchConsumer and FetchFollower.",
    ("request",),
    unit="requests",
)


def _request_time(bean: str, text: str) -> Metric:
    return metric(_REQUESTS + bean, HISTOGRAM, f"{text} (ms).", ("request",))


REQUEST_TIMES = {
    "request_queue_time": _request_time(
        "RequestQueueTimeMs", "From the arrival to the begin of the work"
    ),
    "local_time": _request_time("LocalTimeMs", "Work on this broker"),
    "remote_time": _request_time(
        "RemoteTimeMs", "Waiting for followers (produce) or for data (fetch)"
    ),
    "response_queue_time": _request_time(
        "ResponseQueueTimeMs", "From the answer to the begin of sending"
    ),
    "response_send_time": _request_time("ResponseSendTimeMs", "Writing to the socket"),
    "total_time": _request_time("TotalTimeMs", "From the arrival to the sent answer"),
}
NETWORK_IDLE = metric(
    "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
    PERCENT,
    "The share of time in which the event loop does nothing, 0 to 1.",
)
PROCESSOR_IDLE = metric(
    "kafka.network:type=SocketServer,name=IdlePercent",
    PERCENT,
    "The same; a broker has one event loop.",
    ("networkProcessor",),
)
BEING_SENT = metric(
    "kafka.network:type=SocketServer,name=ResponsesBeingSent",
    GAUGE,
    "Connections on which an answer is half sent.",
)


def _topic(bean: str, text: str, unit: str) -> Metric:
    return metric(_TOPICS + bean, METER, text, ("topic",), unit=unit)


TOPICS = {
    "messages_in": _topic(
        "MessagesInPerSec",
        "Messages appended by producers; those in compressed sets count one by one.",
        "messages",
    ),
    "bytes_in": _topic("BytesInPerSec", "Bytes of message sets appended, as received.", "bytes"),
    "bytes_out": _topic("BytesOutPerSec", "Bytes of messages sent to consumers.", "bytes"),
    "replication_bytes_out": _topic(
        "ReplicationBytesOutPerSec",
        "Not in 0.8.2.2, which has them in bytesout: bytes of messages sent to followers.",
        "bytes",
    ),
    "bytes_rejected": _topic(
        "BytesRejectedPerSec",
        "Bytes of sets refused because a message or the set was too large.",
        "bytes",
    ),
    "failed_produce_requests": _topic(
        "FailedProduceRequestsPerSec",
        "Sets that were not appended, other than for a wrong topic, another leader or a short isr.",
        "requests",
    ),
    "failed_fetch_requests": _topic(
        "FailedFetchRequestsPerSec",
        "Reads that failed, other than for an unknown topic or another leader.",
        "requests",
    ),
}
HANDLER_IDLE = metric(
    "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
    PERCENT,
    "The share of time in which the event loop does nothing, 0 to 1; below 0.3 is busy.",
)
BROKER_STATE = metric(
    "kafka.server:type=KafkaServer,name=BrokerState",
    GAUGE,
    "1 starting, 2 recovering, 3 running, 4 running as controller, 6 handing leaderships over, "
    "7 shutting down.",
)
_MANAGER = "kafka.server:type=ReplicaManager,name="
LEADERS = metric(
    _MANAGER + "LeaderCount",
    GAUGE,
    "Partitions led here.",
)
PARTITIONS = metric(
    _MANAGER + "PartitionCount",
    GAUGE,
    "Partitions with a replica here.",
)
UNDER_REPLICATED_COUNT = metric(
    _MANAGER + "UnderReplicatedPartitions",
    GAUGE,
    "Partitions led here whose isr is shorter than the list of replicas.",
)
ISR_EXPANDS = metric(
    _MANAGER + "IsrExpandsPerSec",
    METER,
    "Isrs that this leader let grow.",
    unit="expands",
)
ISR_SHRINKS = metric(
    _MANAGER + "IsrShrinksPerSec",
    METER,
    "Isrs from which this leader removed replicas; those of dead brokers are the controller's.",
    unit="shrinks",
)


def _purgatory(kind: str, text: str) -> tuple[Metric, Metric]:
    bean = f"kafka.server:type={kind},name="
    entries = f"Partitions that {text} wait for, counted for each request."
    return (
        metric(f"{bean}PurgatorySize", GAUGE, entries),
        metric(f"{bean}NumDelayedRequests", GAUGE, f"{text.capitalize()} that wait."),
    )


FETCH_PURGATORY = _purgatory("FetchRequestPurgatory", "fetches")
PRODUCE_PURGATORY = _purgatory("ProducerRequestPurgatory", "produces")
_DELAYED_FETCH = "kafka.server:type=DelayedFetchRequestMetrics,name="
CONSUMER_EXPIRES = metric(
    _DELAYED_FETCH + "ConsumerExpiresPerSecond",
    METER,
    "Consumers' fetches answered because their wait was over.",
    unit="requests",
)
FOLLOWER_EXPIRES = metric(
    _DELAYED_FETCH + "FollowerExpiresPerSecond",
    METER,
    "Followers' fetches answered because their wait was over.",
    unit="requests",
)
PRODUCE_EXPIRES = metric(
    "kafka.server:type=DelayedProducerRequestMetrics,name=ExpiresPerSecond",
    METER,
    "Sets that were not acknowledged in time, by partition and without.",
    _PARTITION,
    unit="requests",
)
OFFSETS = metric(
    "kafka.server:type=OffsetManager,name=NumOffsets",
    GAUGE,
    "Offsets of the groups that this broker coordinates.",
)
GROUPS = metric(
    "kafka.server:type=OffsetManager,name=NumGroups",
    GAUGE,
    "Groups with such offsets.",
)
MAX_LAG = metric(
    "kafka.server:type=ReplicaFetcherManager,name=MaxLag",
    GAUGE,
    "The largest lag of a partition that is copied here.",
    ("clientId",),
)
MIN_FETCH_RATE = metric(
    "kafka.server:type=ReplicaFetcherManager,name=MinFetchRate",
    GAUGE,
    "Fetches per second of the slowest fetcher in the last minute; 0 without fetchers.",
    ("clientId",),
)
FETCHER_LAG = metric(
    "kafka.server:type=FetcherLagMetrics,name=ConsumerLag",
    GAUGE,
    "Messages between a copied partition and the leader's high watermark.",
    ("clientId", "topic", "partition"),
)
_BROKER = (("clientId", "{clientId}"), ("broker", "{brokerHost}:{brokerPort}"))
FETCHER_REQUESTS = metric(
    "kafka.server:type=FetcherStats,name=RequestsPerSec",
    METER,
    "Fetches sent to a leader.",
    _FETCHER,
    unit="requests",
    labels=_BROKER,
)
FETCHER_BYTES = metric(
    "kafka.server:type=FetcherStats,name=BytesPerSec",
    METER,
    "Bytes of messages fetched from a leader.",
    _FETCHER,
    unit="bytes",
    labels=_BROKER,
)
FETCH_TIMES = metric(
    _FETCHES + "FetchRequestRateAndTimeMs",
    TIMER,
    "Time (ms) of a fetcher's fetches, the leader's wait included.",
    _FETCHER,
    unit="requests",
)
FETCH_SIZES = metric(
    _FETCHES + "FetchResponseSize",
    HISTOGRAM,
    "Bytes of messages in the answers to a fetcher's fetches.",
    _FETCHER,
)
