"""Every metric of a broker, declared with its names in JMX and in Prometheus."""

from __future__ import annotations

from kafka08.metrics.registry import PERCENT, TEXT, Metric, gauge, histogram, meter, metric, timer

_PARTITION = ("topic", "partition")
_FETCHER = ("clientId", "brokerHost", "brokerPort")
_REQUESTS = "kafka.network:type=RequestMetrics,name="
_TOPICS = "kafka.server:type=BrokerTopicMetrics,name="
_FETCHES = "kafka.consumer:type=FetchRequestAndResponseMetrics,name="

VERSION = metric("kafka.common:type=AppInfo,name=Version", TEXT, "The version of kafka08.")
UNDER_REPLICATED = gauge(
    "kafka.cluster:type=Partition,name=UnderReplicated",
    "1 on the leader while the isr is shorter than the list of replicas; 0 on followers.",
    *_PARTITION,
)
ACTIVE_CONTROLLER = gauge(
    "kafka.controller:type=KafkaController,name=ActiveControllerCount",
    "1 on the controller; the sum over all brokers must be 1.",
)
OFFLINE_PARTITIONS = gauge(
    "kafka.controller:type=KafkaController,name=OfflinePartitionsCount",
    "Partitions whose leader is not alive; 0 on brokers that are not the controller.",
)
PREFERRED_IMBALANCE = gauge(
    "kafka.controller:type=KafkaController,name=PreferredReplicaImbalanceCount",
    "Partitions not led by their first replica; 0 on brokers that are not the controller.",
)
ELECTIONS = timer(
    "kafka.controller:type=ControllerStats,name=LeaderElectionRateAndTimeMs",
    "Time (ms) to act on brokers that came or went, elections included.",
    "elections",
)
UNCLEAN_ELECTIONS = meter(
    "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
    "Leaders chosen from outside the isr: acknowledged messages may be lost.",
    "elections",
)
LOG_SEGMENTS = gauge("kafka.log:type=Log,name=NumLogSegments", "Segments of the log.", *_PARTITION)
LOG_START = gauge(
    "kafka.log:type=Log,name=LogStartOffset", "The first offset that is still there.", *_PARTITION
)
LOG_END = gauge(
    "kafka.log:type=Log,name=LogEndOffset", "The next offset to be written.", *_PARTITION
)
LOG_SIZE = gauge(
    "kafka.log:type=Log,name=Size", "Bytes of all segments, without their indexes.", *_PARTITION
)
CLEANER_BUFFER = gauge(
    "kafka.log:type=LogCleaner,name=max-buffer-utilization-percent",
    "The fullest map of keys of the last cleaning of any cleaner.",
)
CLEANER_RECOPY = gauge(
    "kafka.log:type=LogCleaner,name=cleaner-recopy-percent",
    "Bytes written for bytes read in the last cleanings.",
)
CLEANER_TIME = gauge(
    "kafka.log:type=LogCleaner,name=max-clean-time-secs",
    "The longest of the last cleanings; 0 before the first.",
)
CLEANER_DIRTY = gauge(
    "kafka.log:type=LogCleanerManager,name=max-dirty-percent",
    "The dirty share of the dirtiest log at the last choice.",
)
CLEANER_IO = meter(
    "kafka.utils:type=Throttler,name=cleaner-io",
    "Bytes read and written by finished cleanings.",
    "bytes",
)
LOG_FLUSHES = timer(
    "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs", "Time (ms) to sync a log.", "flushes"
)
REQUEST_QUEUE = gauge(
    "kafka.network:type=RequestChannel,name=RequestQueueSize",
    "Requests that were read and wait to be handled.",
)
RESPONSE_QUEUE = gauge(
    "kafka.network:type=RequestChannel,name=ResponseQueueSize",
    "Answers that wait to be sent. The series of a processor is the one event loop's.",
    "processor",
)
REQUESTS = meter(
    _REQUESTS + "RequestsPerSec",
    "Requests answered, by kind; Fetch is the sum of FetchConsumer and FetchFollower.",
    "requests",
    "request",
)


def _request_time(bean: str, text: str) -> Metric:
    return histogram(_REQUESTS + bean, f"{text} (ms).", "request")


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
BEING_SENT = gauge(
    "kafka.network:type=SocketServer,name=ResponsesBeingSent",
    "Connections on which an answer is half sent.",
)


def _topic(bean: str, text: str, unit: str) -> Metric:
    return meter(_TOPICS + bean, text, unit, "topic")


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
BROKER_STATE = gauge(
    "kafka.server:type=KafkaServer,name=BrokerState",
    "1 starting, 2 recovering, 3 running, 4 running as controller, 6 handing leaderships over, "
    "7 shutting down.",
)
_MANAGER = "kafka.server:type=ReplicaManager,name="
LEADERS = gauge(_MANAGER + "LeaderCount", "Partitions led here.")
PARTITIONS = gauge(_MANAGER + "PartitionCount", "Partitions with a replica here.")
UNDER_REPLICATED_COUNT = gauge(
    _MANAGER + "UnderReplicatedPartitions",
    "Partitions led here whose isr is shorter than the list of replicas.",
)
ISR_EXPANDS = meter(_MANAGER + "IsrExpandsPerSec", "Isrs that this leader let grow.", "expands")
ISR_SHRINKS = meter(
    _MANAGER + "IsrShrinksPerSec",
    "Isrs from which this leader removed replicas; those of dead brokers are the controller's.",
    "shrinks",
)


def _purgatory(kind: str, text: str) -> tuple[Metric, Metric]:
    bean = f"kafka.server:type={kind},name="
    entries = f"Partitions that {text} wait for, counted for each request."
    return (
        gauge(f"{bean}PurgatorySize", entries),
        gauge(f"{bean}NumDelayedRequests", f"{text.capitalize()} that wait."),
    )


FETCH_PURGATORY = _purgatory("FetchRequestPurgatory", "fetches")
PRODUCE_PURGATORY = _purgatory("ProducerRequestPurgatory", "produces")
_DELAYED_FETCH = "kafka.server:type=DelayedFetchRequestMetrics,name="
CONSUMER_EXPIRES = meter(
    _DELAYED_FETCH + "ConsumerExpiresPerSecond",
    "Consumers' fetches answered because their wait was over.",
    "requests",
)
FOLLOWER_EXPIRES = meter(
    _DELAYED_FETCH + "FollowerExpiresPerSecond",
    "Followers' fetches answered because their wait was over.",
    "requests",
)
PRODUCE_EXPIRES = meter(
    "kafka.server:type=DelayedProducerRequestMetrics,name=ExpiresPerSecond",
    "Sets that were not acknowledged in time, by partition and without.",
    "requests",
    *_PARTITION,
)
OFFSETS = gauge(
    "kafka.server:type=OffsetManager,name=NumOffsets",
    "Offsets of the groups that this broker coordinates.",
)
GROUPS = gauge("kafka.server:type=OffsetManager,name=NumGroups", "Groups with such offsets.")
MAX_LAG = gauge(
    "kafka.server:type=ReplicaFetcherManager,name=MaxLag",
    "The largest lag of a partition that is copied here.",
    "clientId",
)
MIN_FETCH_RATE = gauge(
    "kafka.server:type=ReplicaFetcherManager,name=MinFetchRate",
    "Fetches per second of the slowest fetcher in the last minute; 0 without fetchers.",
    "clientId",
)
FETCHER_LAG = gauge(
    "kafka.server:type=FetcherLagMetrics,name=ConsumerLag",
    "Messages between a copied partition and the leader's high watermark.",
    "clientId",
    "topic",
    "partition",
)
_BROKER = (("clientId", "{clientId}"), ("broker", "{brokerHost}:{brokerPort}"))
FETCHER_REQUESTS = meter(
    "kafka.server:type=FetcherStats,name=RequestsPerSec",
    "Fetches sent to a leader.",
    "requests",
    *_FETCHER,
    labels=_BROKER,
)
FETCHER_BYTES = meter(
    "kafka.server:type=FetcherStats,name=BytesPerSec",
    "Bytes of messages fetched from a leader.",
    "bytes",
    *_FETCHER,
    labels=_BROKER,
)
FETCH_TIMES = timer(
    _FETCHES + "FetchRequestRateAndTimeMs",
    "Time (ms) of a fetcher's fetches, the leader's wait included.",
    "requests",
    *_FETCHER,
)
FETCH_SIZES = histogram(
    _FETCHES + "FetchResponseSize",
    "Bytes of messages in the answers to a fetcher's fetches.",
    *_FETCHER,
)
