"""Every metric of a broker, declared with its names in JMX and in Prometheus."""

from __future__ import annotations

from kafka08.metrics.registry import Beans, Metric

_PARTITION = ("topic", "partition")
_FETCHER = ("clientId", "brokerHost", "brokerPort")

VERSION = Beans("kafka.common:type=AppInfo").text("Version", "The version of kafka08.")
UNDER_REPLICATED = Beans("kafka.cluster:type=Partition", *_PARTITION).gauge(
    "UnderReplicated",
    "1 on the leader while the isr is shorter than the list of replicas; 0 on followers.",
)
_IN_SYNC = Beans("kafka.cluster:type=Partition", *_PARTITION)
PARTITION_UNDER_MIN_ISR = _IN_SYNC.gauge(
    "UnderMinIsr",
    "Not in 0.8.2.2. 1 on the leader while the isr is shorter than min.insync.replicas; 0 on "
    "followers.",
)
PARTITION_AT_MIN_ISR = _IN_SYNC.gauge(
    "AtMinIsr",
    "Not in 0.8.2.2. 1 on the leader while the isr is just as long as that; 0 on followers.",
)
IN_SYNC_REPLICAS = _IN_SYNC.gauge(
    "InSyncReplicasCount", "Not in 0.8.2.2. The length of the isr on the leader; 0 on followers."
)
_CONTROLLER = Beans("kafka.controller:type=KafkaController")
ACTIVE_CONTROLLER = _CONTROLLER.gauge(
    "ActiveControllerCount", "1 on the controller; the sum over all brokers must be 1."
)
OFFLINE_PARTITIONS = _CONTROLLER.gauge(
    "OfflinePartitionsCount",
    "Partitions whose leader is not alive; 0 on brokers that are not the controller.",
)
PREFERRED_IMBALANCE = _CONTROLLER.gauge(
    "PreferredReplicaImbalanceCount",
    "Partitions not led by their first replica; 0 on brokers that are not the controller.",
)
GLOBAL_TOPICS = _CONTROLLER.gauge(
    "GlobalTopicCount",
    "Not in 0.8.2.2. Topics of the cluster; 0 on brokers that are not the controller.",
)
GLOBAL_PARTITIONS = _CONTROLLER.gauge(
    "GlobalPartitionCount",
    "Not in 0.8.2.2. Partitions of the cluster; 0 on brokers that are not the controller.",
)
_ELECTIONS = Beans("kafka.controller:type=ControllerStats")
ELECTIONS = _ELECTIONS.timer(
    "LeaderElectionRateAndTimeMs",
    "Time (ms) to act on brokers that came or went, elections included.",
    "elections",
)
UNCLEAN_ELECTIONS = _ELECTIONS.meter(
    "UncleanLeaderElectionsPerSec",
    "Leaders chosen from outside the isr: acknowledged messages may be lost.",
    "elections",
)
_LOG = Beans("kafka.log:type=Log", *_PARTITION)
LOG_SEGMENTS = _LOG.gauge("NumLogSegments", "Segments of the log.")
LOG_START = _LOG.gauge("LogStartOffset", "The first offset that is still there.")
LOG_END = _LOG.gauge("LogEndOffset", "The next offset to be written.")
LOG_SIZE = _LOG.gauge("Size", "Bytes of all segments, without their indexes.")
OFFLINE_DIRECTORIES = Beans("kafka.log:type=LogManager").gauge(
    "OfflineLogDirectoryCount", "Not in 0.8.2.2. Data directories that have failed."
)
_DIRECTORIES = Beans("kafka.log:type=LogManager", "logDirectory")
DIRECTORY_OFFLINE = _DIRECTORIES.gauge(
    "LogDirectoryOffline", "Not in 0.8.2.2. 1 for a data directory that has failed."
)
DIRECTORY_FULL = _DIRECTORIES.gauge(
    "LogDirectoryFull",
    "Not in 0.8.2.2. 1 for a data directory whose disk is full: it takes no messages.",
)
DIRECTORY_SIZE = _DIRECTORIES.gauge(
    "LogDirectorySize", "Not in 0.8.2.2. Bytes of the logs in a data directory, without indexes."
)
DISK_TOTAL = _DIRECTORIES.gauge(
    "LogDirectoryTotalBytes", "Not in 0.8.2.2. Bytes of the disk of a data directory."
)
DISK_FREE = _DIRECTORIES.gauge(
    "LogDirectoryFreeBytes", "Not in 0.8.2.2. Bytes of that disk that the broker may still use."
)
_CLEANER = Beans("kafka.log:type=LogCleaner")
CLEANER_BUFFER = _CLEANER.gauge(
    "max-buffer-utilization-percent",
    "The fullest map of keys of the last cleaning of any cleaner.",
)
CLEANER_RECOPY = _CLEANER.gauge(
    "cleaner-recopy-percent", "Bytes written for bytes read in the last cleanings."
)
CLEANER_TIME = _CLEANER.gauge(
    "max-clean-time-secs", "The longest of the last cleanings; 0 before the first."
)
CLEANER_DIRTY = Beans("kafka.log:type=LogCleanerManager").gauge(
    "max-dirty-percent", "The dirty share of the dirtiest log at the last choice."
)
CLEANER_IO = Beans("kafka.utils:type=Throttler").meter(
    "cleaner-io", "Bytes read and written by finished cleanings.", "bytes"
)
LOG_FLUSHES = Beans("kafka.log:type=LogFlushStats").timer(
    "LogFlushRateAndTimeMs", "Time (ms) to sync a log.", "flushes"
)
REQUEST_QUEUE = Beans("kafka.network:type=RequestChannel").gauge(
    "RequestQueueSize", "Requests that were read and wait to be handled."
)
RESPONSE_QUEUE = Beans("kafka.network:type=RequestChannel", "processor").gauge(
    "ResponseQueueSize",
    "Answers that wait to be sent. The series of a processor is the one event loop's.",
)
_REQUESTS = Beans("kafka.network:type=RequestMetrics", "request")
REQUESTS = _REQUESTS.meter(
    "RequestsPerSec",
    "Requests answered, by kind; Fetch is the sum of FetchConsumer and FetchFollower.",
    "requests",
)
REQUEST_TIMES = {
    "request_queue_time": _REQUESTS.histogram(
        "RequestQueueTimeMs", "From the arrival to the begin of the work (ms)."
    ),
    "local_time": _REQUESTS.histogram("LocalTimeMs", "Work on this broker (ms)."),
    "remote_time": _REQUESTS.histogram(
        "RemoteTimeMs", "Waiting for followers (produce) or for data (fetch) (ms)."
    ),
    "response_queue_time": _REQUESTS.histogram(
        "ResponseQueueTimeMs", "From the answer to the begin of sending (ms)."
    ),
    "response_send_time": _REQUESTS.histogram("ResponseSendTimeMs", "Writing to the socket (ms)."),
    "total_time": _REQUESTS.histogram("TotalTimeMs", "From the arrival to the sent answer (ms)."),
}
NETWORK_IDLE = Beans("kafka.network:type=SocketServer").percent(
    "NetworkProcessorAvgIdlePercent",
    "The share of time in which the event loop does nothing, 0 to 1.",
)
PROCESSOR_IDLE = Beans("kafka.network:type=SocketServer", "networkProcessor").percent(
    "IdlePercent", "The same; a broker has one event loop."
)
CONNECTIONS = Beans("kafka.server:type=socket-server-metrics").gauge(
    "connection-count", "Not in 0.8.2.2. Connections that are open, on all listeners."
)
BEING_SENT = Beans("kafka.network:type=SocketServer").gauge(
    "ResponsesBeingSent", "Connections on which an answer is half sent."
)
_TOPICS = Beans("kafka.server:type=BrokerTopicMetrics", "topic")
TOPICS = {
    "messages_in": _TOPICS.meter(
        "MessagesInPerSec",
        "Messages appended by producers; those in compressed sets count one by one.",
        "messages",
    ),
    "bytes_in": _TOPICS.meter(
        "BytesInPerSec", "Bytes of message sets appended, as received.", "bytes"
    ),
    "bytes_out": _TOPICS.meter("BytesOutPerSec", "Bytes of messages sent to consumers.", "bytes"),
    "replication_bytes_out": _TOPICS.meter(
        "ReplicationBytesOutPerSec",
        "Not in 0.8.2.2, which has them in bytesout: bytes of messages sent to followers.",
        "bytes",
    ),
    "bytes_rejected": _TOPICS.meter(
        "BytesRejectedPerSec",
        "Bytes of sets refused because a message or the set was too large.",
        "bytes",
    ),
    "total_produce_requests": _TOPICS.meter(
        "TotalProduceRequestsPerSec",
        "Not in 0.8.2.2. Sets in produce requests, of topics whose leader is here.",
        "requests",
    ),
    "total_fetch_requests": _TOPICS.meter(
        "TotalFetchRequestsPerSec",
        "Not in 0.8.2.2. Partitions in fetches that could be read, those of followers included.",
        "requests",
    ),
    "failed_produce_requests": _TOPICS.meter(
        "FailedProduceRequestsPerSec",
        "Sets that were not appended, other than for a wrong topic, another leader or a short isr.",
        "requests",
    ),
    "failed_fetch_requests": _TOPICS.meter(
        "FailedFetchRequestsPerSec",
        "Reads that failed, other than for an unknown topic or another leader.",
        "requests",
    ),
}
HANDLER_IDLE = Beans("kafka.server:type=KafkaRequestHandlerPool").percent(
    "RequestHandlerAvgIdlePercent",
    "The share of time in which the event loop does nothing, 0 to 1; below 0.3 is busy.",
)
BROKER_STATE = Beans("kafka.server:type=KafkaServer").gauge(
    "BrokerState",
    "1 starting, 2 recovering, 3 running, 4 running as controller, 6 handing leaderships over, "
    "7 shutting down.",
)
_MANAGER = Beans("kafka.server:type=ReplicaManager")
LEADERS = _MANAGER.gauge("LeaderCount", "Partitions led here.")
PARTITIONS = _MANAGER.gauge("PartitionCount", "Partitions with a replica here.")
UNDER_REPLICATED_COUNT = _MANAGER.gauge(
    "UnderReplicatedPartitions",
    "Partitions led here whose isr is shorter than the list of replicas.",
)
UNDER_MIN_ISR = _MANAGER.gauge(
    "UnderMinIsrPartitionCount",
    "Not in 0.8.2.2. Partitions led here whose isr is shorter than min.insync.replicas: they "
    "refuse messages with acks=all.",
)
AT_MIN_ISR = _MANAGER.gauge(
    "AtMinIsrPartitionCount",
    "Not in 0.8.2.2. Partitions led here that would refuse them with one replica less.",
)
ISR_EXPANDS = _MANAGER.meter("IsrExpandsPerSec", "Isrs that this leader let grow.", "expands")
ISR_SHRINKS = _MANAGER.meter(
    "IsrShrinksPerSec",
    "Isrs from which this leader removed replicas; those of dead brokers are the controller's.",
    "shrinks",
)
PRODUCER_IDS = _MANAGER.gauge(
    "ProducerIdCount",
    "Not in 0.8.2.2. Producers with an id that the partitions here know, counted in each.",
)
LATE_TRANSACTIONS = _MANAGER.gauge(
    "PartitionsWithLateTransactionsCount",
    "Not in 0.8.2.2. Partitions led here that hold back readers of committed transactions: a "
    "transaction is open whose producer was silent for transaction.max.timeout.ms and 5 minutes.",
)
_MARKERS = Beans("kafka.coordinator.transaction:type=TransactionMarkerChannelManager")
MARKERS_WITHOUT_LEADER = _MARKERS.gauge(
    "UnknownDestinationQueueSize",
    "Not in 0.8.2.2. Partitions without a leader that must still hear how a transaction ended.",
)
UNFINISHED_TRANSACTIONS = _MARKERS.gauge(
    "LogAppendRetryQueueSize",
    "Not in 0.8.2.2. Transactions that all partitions have heard of, and whose end could not be "
    "stored yet.",
)
_VERIFICATION = Beans("kafka.server:type=AddPartitionsToTxnManager")
VERIFICATION_TIMES = _VERIFICATION.histogram(
    "VerificationTimeMs",
    "Not in 0.8.2.2. Time (ms) in which coordinators say whether a transaction includes a "
    "partition.",
)
VERIFICATION_FAILURES = _VERIFICATION.meter(
    "VerificationFailureRate",
    "Not in 0.8.2.2. Transactions that do not include the partition, or that nobody knows about.",
    "verifications",
)


ZOOKEEPER_AWAY = Beans("kafka.server:type=SessionExpireListener").gauge(
    "ZooKeeperOutOfReach",
    "Not in 0.8.2.2. 1 while the broker has no connection to ZooKeeper: it may not lead any more.",
)
CERTIFICATE_END = Beans("kafka.network:type=SocketServer", "listener").gauge(
    "CertificateExpirySeconds",
    "Not in 0.8.2.2. When the certificate of a listener ends, in seconds since 1970.",
)


def _purgatory(kind: str, text: str) -> tuple[Metric, Metric]:
    beans = Beans(f"kafka.server:type={kind}")
    entries = f"Partitions that {text} wait for, counted for each request."
    return (
        beans.gauge("PurgatorySize", entries),
        beans.gauge("NumDelayedRequests", f"{text.capitalize()} that wait."),
    )


FETCH_PURGATORY = _purgatory("FetchRequestPurgatory", "fetches")
PRODUCE_PURGATORY = _purgatory("ProducerRequestPurgatory", "produces")
_DELAYED_FETCH = Beans("kafka.server:type=DelayedFetchRequestMetrics")
CONSUMER_EXPIRES = _DELAYED_FETCH.meter(
    "ConsumerExpiresPerSecond",
    "Consumers' fetches answered because their wait was over.",
    "requests",
)
FOLLOWER_EXPIRES = _DELAYED_FETCH.meter(
    "FollowerExpiresPerSecond",
    "Followers' fetches answered because their wait was over.",
    "requests",
)
PRODUCE_EXPIRES = Beans("kafka.server:type=DelayedProducerRequestMetrics", *_PARTITION).meter(
    "ExpiresPerSecond",
    "Sets that were not acknowledged in time, by partition and without.",
    "requests",
)
_OFFSETS = Beans("kafka.server:type=OffsetManager")
OFFSETS = _OFFSETS.gauge("NumOffsets", "Offsets of the groups that this broker coordinates.")
GROUPS = _OFFSETS.gauge("NumGroups", "Groups with such offsets.")
_FETCHERS = Beans("kafka.server:type=ReplicaFetcherManager", "clientId")
MAX_LAG = _FETCHERS.gauge("MaxLag", "The largest lag of a partition that is copied here.")
MIN_FETCH_RATE = _FETCHERS.gauge(
    "MinFetchRate",
    "Fetches per second of the slowest fetcher in the last minute; 0 without fetchers.",
)
FETCHER_LAG = Beans("kafka.server:type=FetcherLagMetrics", "clientId", *_PARTITION).gauge(
    "ConsumerLag", "Messages between a copied partition and the leader's high watermark."
)
_FETCHER_STATS = Beans(
    "kafka.server:type=FetcherStats",
    *_FETCHER,
    labels=(("clientId", "{clientId}"), ("broker", "{brokerHost}:{brokerPort}")),
)
FETCHER_REQUESTS = _FETCHER_STATS.meter("RequestsPerSec", "Fetches sent to a leader.", "requests")
FETCHER_BYTES = _FETCHER_STATS.meter(
    "BytesPerSec", "Bytes of messages fetched from a leader.", "bytes"
)
_FETCHES = Beans("kafka.consumer:type=FetchRequestAndResponseMetrics", *_FETCHER)
FETCH_TIMES = _FETCHES.timer(
    "FetchRequestRateAndTimeMs",
    "Time (ms) of a fetcher's fetches, the leader's wait included.",
    "requests",
)
FETCH_SIZES = _FETCHES.histogram(
    "FetchResponseSize", "Bytes of messages in the answers to a fetcher's fetches."
)
