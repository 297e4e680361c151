"""Every metric of a broker, declared with its names in JMX and in Prometheus."""

from __future__ import annotations

from kafka08.metrics.registry import GAUGE, HISTOGRAM, METER, PERCENT, TEXT, TIMER, Metric

_PARTITION = ("topic", "partition")
_FETCHER = ("clientId", "brokerHost", "brokerPort")
_REQUESTS = "kafka.network:type=RequestMetrics,name="
_TOPICS = "kafka.server:type=BrokerTopicMetrics,name="
_FETCHES = "kafka.consumer:type=FetchRequestAndResponseMetrics,name="

VERSION = Metric(
    "kafka.common:type=AppInfo,name=Version",
    TEXT,
    "kafka_common_appinfo_version",
    "The version of kafka08.",
)
UNDER_REPLICATED = Metric(
    "kafka.cluster:type=Partition,name=UnderReplicated",
    GAUGE,
    "kafka_cluster_partition_underreplicated",
    "1 on the leader while the isr is shorter than the list of replicas; 0 on followers.",
    _PARTITION,
)
ACTIVE_CONTROLLER = Metric(
    "kafka.controller:type=KafkaController,name=ActiveControllerCount",
    GAUGE,
    "kafka_controller_kafkacontroller_activecontrollercount",
    "1 on the controller; the sum over all brokers must be 1.",
)
OFFLINE_PARTITIONS = Metric(
    "kafka.controller:type=KafkaController,name=OfflinePartitionsCount",
    GAUGE,
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "Partitions whose leader is not alive; 0 on brokers that are not the controller.",
)
PREFERRED_IMBALANCE = Metric(
    "kafka.controller:type=KafkaController,name=PreferredReplicaImbalanceCount",
    GAUGE,
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    "Partitions not led by their first replica; 0 on brokers that are not the controller.",
)
ELECTIONS = Metric(
    "kafka.controller:type=ControllerStats,name=LeaderElectionRateAndTimeMs",
    TIMER,
    "kafka_controller_controllerstats_leaderelectionrateandtimems",
    "Time (ms) to act on brokers that came or went, elections included.",
    unit="elections",
)
UNCLEAN_ELECTIONS = Metric(
    "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
    METER,
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "Leaders chosen from outside the isr: acknowledged messages may be lost.",
    unit="elections",
)
LOG_SEGMENTS = Metric(
    "kafka.log:type=Log,name=NumLogSegments",
    GAUGE,
    "kafka_log_log_numlogsegments",
    "Segments of the log.",
    _PARTITION,
)
LOG_START = Metric(
    "kafka.log:type=Log,name=LogStartOffset",
    GAUGE,
    "kafka_log_log_logstartoffset",
    "The first offset that is still there.",
    _PARTITION,
)
LOG_END = Metric(
    "kafka.log:type=Log,name=LogEndOffset",
    GAUGE,
    "kafka_log_log_logendoffset",
    "The next offset to be written.",
    _PARTITION,
)
LOG_SIZE = Metric(
    "kafka.log:type=Log,name=Size",
    GAUGE,
    "kafka_log_log_size",
    "Bytes of all segments, without their indexes.",
    _PARTITION,
)
CLEANER_BUFFER = Metric(
    "kafka.log:type=LogCleaner,name=max-buffer-utilization-percent",
    GAUGE,
    "kafka_log_logcleaner_max_buffer_utilization_percent",
    "The fullest map of keys of the last cleaning of any cleaner.",
)
CLEANER_RECOPY = Metric(
    "kafka.log:type=LogCleaner,name=cleaner-recopy-percent",
    GAUGE,
    "kafka_log_logcleaner_cleaner_recopy_percent",
    "Bytes written for bytes read in the last cleanings.",
)
CLEANER_TIME = Metric(
    "kafka.log:type=LogCleaner,name=max-clean-time-secs",
    GAUGE,
    "kafka_log_logcleaner_max_clean_time_secs",
    "The longest of the last cleanings; 0 before the first.",
)
CLEANER_DIRTY = Metric(
    "kafka.log:type=LogCleanerManager,name=max-dirty-percent",
    GAUGE,
    "kafka_log_logcleanermanager_max_dirty_percent",
    "The dirty share of the dirtiest log at the last choice.",
)
CLEANER_IO = Metric(
    "kafka.utils:type=Throttler,name=cleaner-io",
    METER,
    "kafka_utils_throttler_cleaner_io_total",
    "Bytes read and written by finished cleanings.",
    unit="bytes",
)
LOG_FLUSHES = Metric(
    "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
    TIMER,
    "kafka_log_logflushstats_logflushrateandtimems",
    "Time (ms) to sync a log.",
    unit="flushes",
)
REQUEST_QUEUE = Metric(
    "kafka.network:type=RequestChannel,name=RequestQueueSize",
    GAUGE,
    "kafka_network_requestchannel_requestqueuesize",
    "Requests that were read and wait to be handled.",
)
RESPONSE_QUEUE = Metric(
    "kafka.network:type=RequestChannel,name=ResponseQueueSize",
    GAUGE,
    "kafka_network_requestchannel_responsequeuesize",
    "Answers that wait to be sent. The series of a processor is the one event loop's.",
    ("processor",),
)
REQUESTS = Metric(
    _REQUESTS + "RequestsPerSec",
    METER,
    "kafka_network_requestmetrics_requests_total",
    "Requests answered, by kind; Fetch is the sum of FetchConsumer and FetchFollower.",
    ("request",),
    unit="requests",
)


def _request_time(bean: str, name: str, text: str) -> Metric:
    full = f"kafka_network_requestmetrics_{name}"
    return Metric(_REQUESTS + bean, HISTOGRAM, full, f"{text} (ms).", ("request",))


REQUEST_TIMES = {
    "request_queue_time": _request_time(
        "RequestQueueTimeMs", "requestqueuetimems", "From the arrival to the begin of the work"
    ),
    "local_time": _request_time("LocalTimeMs", "localtimems", "Work on this broker"),
    "remote_time": _request_time(
        "RemoteTimeMs", "remotetimems", "Waiting for followers (produce) or for data (fetch)"
    ),
    "response_queue_time": _request_time(
        "ResponseQueueTimeMs", "responsequeuetimems", "From the answer to the begin of sending"
    ),
    "response_send_time": _request_time(
        "ResponseSendTimeMs", "responsesendtimems", "Writing to the socket"
    ),
    "total_time": _request_time(
        "TotalTimeMs", "totaltimems", "From the arrival to the sent answer"
    ),
}
NETWORK_IDLE = Metric(
    "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
    PERCENT,
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "The share of time in which the event loop does nothing, 0 to 1.",
)
PROCESSOR_IDLE = Metric(
    "kafka.network:type=SocketServer,name=IdlePercent",
    PERCENT,
    "kafka_network_socketserver_idle_percent",
    "The same; a broker has one event loop.",
    ("networkProcessor",),
)
BEING_SENT = Metric(
    "kafka.network:type=SocketServer,name=ResponsesBeingSent",
    GAUGE,
    "kafka_network_socketserver_responsesbeingsent",
    "Connections on which an answer is half sent.",
)


def _topic(bean: str, name: str, text: str, unit: str) -> Metric:
    full = f"kafka_server_brokertopicmetrics_{name}_total"
    return Metric(_TOPICS + bean, METER, full, text, ("topic",), unit=unit)


TOPICS = {
    "messages_in": _topic(
        "MessagesInPerSec",
        "messagesin",
        "Messages appended by producers; those in compressed sets count one by one.",
        "messages",
    ),
    "bytes_in": _topic(
        "BytesInPerSec", "bytesin", "Bytes of message sets appended, as received.", "bytes"
    ),
    "bytes_out": _topic(
        "BytesOutPerSec", "bytesout", "Bytes of messages sent to consumers.", "bytes"
    ),
    "replication_bytes_out": _topic(
        "ReplicationBytesOutPerSec",
        "replicationbytesout",
        "Not in 0.8.2.2, which has them in bytesout: bytes of messages sent to followers.",
        "bytes",
    ),
    "bytes_rejected": _topic(
        "BytesRejectedPerSec",
        "bytesrejected",
        "Bytes of sets refused because a message or the set was too large.",
        "bytes",
    ),
    "failed_produce_requests": _topic(
        "FailedProduceRequestsPerSec",
        "failedproducerequests",
        "Sets that were not appended, other than for a wrong topic, another leader or a short isr.",
        "requests",
    ),
    "failed_fetch_requests": _topic(
        "FailedFetchRequestsPerSec",
        "failedfetchrequests",
        "Reads that failed, other than for an unknown topic or another leader.",
        "requests",
    ),
}
HANDLER_IDLE = Metric(
    "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
    PERCENT,
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "The share of time in which the event loop does nothing, 0 to 1; below 0.3 is busy.",
)
BROKER_STATE = Metric(
    "kafka.server:type=KafkaServer,name=BrokerState",
    GAUGE,
    "kafka_server_kafkaserver_brokerstate",
    "1 starting, 2 recovering, 3 running, 4 running as controller, 6 handing leaderships over, "
    "7 shutting down.",
)
_MANAGER = "kafka.server:type=ReplicaManager,name="
LEADERS = Metric(
    _MANAGER + "LeaderCount",
    GAUGE,
    "kafka_server_replicamanager_leadercount",
    "Partitions led here.",
)
PARTITIONS = Metric(
    _MANAGER + "PartitionCount",
    GAUGE,
    "kafka_server_replicamanager_partitioncount",
    "Partitions with a replica here.",
)
UNDER_REPLICATED_COUNT = Metric(
    _MANAGER + "UnderReplicatedPartitions",
    GAUGE,
    "kafka_server_replicamanager_underreplicatedpartitions",
    "Partitions led here whose isr is shorter than the list of replicas.",
)
ISR_EXPANDS = Metric(
    _MANAGER + "IsrExpandsPerSec",
    METER,
    "kafka_server_replicamanager_isrexpands_total",
    "Isrs that this leader let grow.",
    unit="expands",
)
ISR_SHRINKS = Metric(
    _MANAGER + "IsrShrinksPerSec",
    METER,
    "kafka_server_replicamanager_isrshrinks_total",
    "Isrs from which this leader removed replicas; those of dead brokers are the controller's.",
    unit="shrinks",
)


def _purgatory(kind: str, text: str) -> tuple[Metric, Metric]:
    bean, name = f"kafka.server:type={kind},name=", f"kafka_server_{kind.lower()}_"
    entries = f"Partitions that {text} wait for, counted for each request."
    return (
        Metric(f"{bean}PurgatorySize", GAUGE, f"{name}purgatorysize", entries),
        Metric(
            f"{bean}NumDelayedRequests",
            GAUGE,
            f"{name}numdelayedrequests",
            f"{text.capitalize()} that wait.",
        ),
    )


FETCH_PURGATORY = _purgatory("FetchRequestPurgatory", "fetches")
PRODUCE_PURGATORY = _purgatory("ProducerRequestPurgatory", "produces")
_DELAYED_FETCH = "kafka.server:type=DelayedFetchRequestMetrics,name="
CONSUMER_EXPIRES = Metric(
    _DELAYED_FETCH + "ConsumerExpiresPerSecond",
    METER,
    "kafka_server_delayedfetchrequestmetrics_consumerexpires_total",
    "Consumers' fetches answered because their wait was over.",
    unit="requests",
)
FOLLOWER_EXPIRES = Metric(
    _DELAYED_FETCH + "FollowerExpiresPerSecond",
    METER,
    "kafka_server_delayedfetchrequestmetrics_followerexpires_total",
    "Followers' fetches answered because their wait was over.",
    unit="requests",
)
PRODUCE_EXPIRES = Metric(
    "kafka.server:type=DelayedProducerRequestMetrics,name=ExpiresPerSecond",
    METER,
    "kafka_server_delayedproducerrequestmetrics_expires_total",
    "Sets that were not acknowledged in time, by partition and without.",
    _PARTITION,
    unit="requests",
)
OFFSETS = Metric(
    "kafka.server:type=OffsetManager,name=NumOffsets",
    GAUGE,
    "kafka_server_offsetmanager_numoffsets",
    "Offsets of the groups that this broker coordinates.",
)
GROUPS = Metric(
    "kafka.server:type=OffsetManager,name=NumGroups",
    GAUGE,
    "kafka_server_offsetmanager_numgroups",
    "Groups with such offsets.",
)
MAX_LAG = Metric(
    "kafka.server:type=ReplicaFetcherManager,name=MaxLag",
    GAUGE,
    "kafka_server_replicafetchermanager_maxlag",
    "The largest lag of a partition that is copied here.",
    ("clientId",),
)
MIN_FETCH_RATE = Metric(
    "kafka.server:type=ReplicaFetcherManager,name=MinFetchRate",
    GAUGE,
    "kafka_server_replicafetchermanager_minfetchrate",
    "Fetches per second of the slowest fetcher in the last minute; 0 without fetchers.",
    ("clientId",),
)
FETCHER_LAG = Metric(
    "kafka.server:type=FetcherLagMetrics,name=ConsumerLag",
    GAUGE,
    "kafka_server_fetcherlagmetrics_consumerlag",
    "Messages between a copied partition and the leader's high watermark.",
    ("clientId", "topic", "partition"),
)
_BROKER = (("clientId", "{clientId}"), ("broker", "{brokerHost}:{brokerPort}"))
FETCHER_REQUESTS = Metric(
    "kafka.server:type=FetcherStats,name=RequestsPerSec",
    METER,
    "kafka_server_fetcherstats_requests_total",
    "Fetches sent to a leader.",
    _FETCHER,
    unit="requests",
    labels=_BROKER,
)
FETCHER_BYTES = Metric(
    "kafka.server:type=FetcherStats,name=BytesPerSec",
    METER,
    "kafka_server_fetcherstats_bytes_total",
    "Bytes of messages fetched from a leader.",
    _FETCHER,
    unit="bytes",
    labels=_BROKER,
)
FETCH_TIMES = Metric(
    _FETCHES + "FetchRequestRateAndTimeMs",
    TIMER,
    "kafka_consumer_fetchrequestandresponsemetrics_fetchrequestrateandtimems",
    "Time (ms) of a fetcher's fetches, the leader's wait included.",
    _FETCHER,
    unit="requests",
)
FETCH_SIZES = Metric(
    _FETCHES + "FetchResponseSize",
    HISTOGRAM,
    "kafka_consumer_fetchrequestandresponsemetrics_fetchresponsesize",
    "Bytes of messages in the answers to a fetcher's fetches.",
    _FETCHER,
)
