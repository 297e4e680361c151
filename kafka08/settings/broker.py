"""The settings of brokers, each declared once: ``BrokerConfig`` mirrors kafka.server.KafkaConfig.

Attributes are the keys with dots as underscores, already resolved: a key that stands in for another
one (``log.roll.hours`` for ``log.roll.ms``) has done so. docs/settings.md is generated from here.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.common import ISOLATION_LEVELS, READ_UNCOMMITTED
from kafka08.errors import ConfigError
from kafka08.settings.listeners import OWN_PREFIX, ListenerSettings, own_settings
from kafka08.settings.settings import (
    CODEC,
    DOUBLE,
    DOUBLE_MAX,
    INT,
    INT_MAX,
    LIST,
    LONG,
    LONG_MAX,
    MAP,
    OWN,
    PASSWORD,
    RELEASE,
    SHORT,
    dotted,
    one_of,
    parse_list,
    setting,
    value_of,
)
from kafka08.settings.tls import SslSettings
from kafka08.settings.zookeeper import ZooKeeperSecurity

_MINUTE_MS = 60 * 1000
_HOUR_MS = 60 * _MINUTE_MS
COMPRESSED_SETS = ("verbatim", "normalised")
TIMESTAMP_TYPES = CREATE_TIME, LOG_APPEND_TIME = ("CreateTime", "LogAppendTime")
AUTHORIZERS = (
    "kafka.security.auth.SimpleAclAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)


class BrokerConfig(SslSettings, ZooKeeperSecurity, ListenerSettings):
    """The settings of server.properties, resolved and checked. Raises ConfigError."""

    broker_id: int = dotted(
        kind=INT, low=0, doc="The broker's number; no two brokers of a cluster may share one."
    )
    broker_processes: int = dotted(
        1,
        low=1,
        doc="Not in 0.8.2.2. Brokers that one start of the file runs, each on a core of its own. "
        "Above 1, `process.I.KEY` is the setting KEY of the one with the number I, from 0 on. "
        "[Large machines](performance.md#large-machines) says what each derives from the file.",
    )
    broker_unit: str | None = dotted(
        None,
        default_text="none; with `broker.processes` above 1 the machine's name and the first id",
        doc="Not in 0.8.2.2. The name of what fails or stops as one with this broker, such as its "
        "machine. Brokers with the same name get no two replicas of a partition if others are "
        "there.",
    )
    broker_rack: str | None = dotted(
        None,
        default_text="none; with `broker.processes` above 1 `broker.unit`",
        doc="Not in 0.8.2.2. The broker's rack. Replicas of a partition are spread over the racks, "
        "and inside of a rack over the units. Clients get it too.",
    )
    message_max_bytes: int = dotted(
        1000012, low=0, doc="Largest log entry accepted, its 12 bytes of offset and size included."
    )
    num_network_threads: int = dotted(
        3,
        low=1,
        doc="Network threads of 0.8.2.2. No effect here: one thread serves all connections.",
    )
    num_io_threads: int = dotted(8, low=1, doc="Threads that serve requests in 0.8.2.2.")
    background_threads: int = dotted(
        10, low=1, doc="Threads for periodic work such as flushing and deleting segments."
    )
    queued_max_requests: int = dotted(
        500, low=1, doc="Requests that may wait to be served. At this number, no more are read."
    )
    queued_max_request_bytes: int = dotted(
        kind=LONG,
        derive=lambda config: max(256 << 20, 2 * config.socket_request_max_bytes),
        default_text="268435456, or twice `socket.request.max.bytes`",
        doc="Most bytes of memory for requests that are incomplete or being served. Requests that "
        "fit a buffer of 256 KiB are not counted: `max.connections.per.ip` limits those. At the "
        "limit sockets are not read. -1: no limit.",
    )

    port: int = dotted(9092, doc="Port to listen on.")
    host_name: str | None = dotted(
        None, doc="Address to listen on. The default is every interface, IPv4 and IPv6."
    )
    advertised_host_name: str | None = dotted(
        derive=value_of("host.name"),
        default_text="`host.name`, or else the machine's canonical name",
        doc="Host that clients and other brokers connect to. If neither this nor "
        "`host.name` is set, the machine's own name must resolve, or the broker does not start.",
    )
    advertised_port: int = dotted(
        kind=INT,
        derive=value_of("port"),
        default_text="`port`",
        doc="Port that clients and other brokers connect to.",
    )
    listeners: str | None = dotted(
        None,
        default_text="`PLAINTEXT://host.name:port`",
        doc="Not in 0.8.2.2. Where to listen: a comma list of `NAME://host:port`. Without a host, "
        "or with `0.0.0.0`: every interface. A name is that of a security protocol or one in "
        "`listener.security.protocol.map`. If set, `host.name` and `port` do not count.",
    )
    advertised_listeners: str | None = dotted(
        None,
        default_text="`listeners`",
        doc="Not in 0.8.2.2. The addresses that clients and other brokers use, in the form of "
        "`listeners`. Without a host: the machine's canonical name. Port 0: the listener's port.",
    )
    listener_security_protocol_map: str | None = dotted(
        None,
        default_text="each protocol's name to itself",
        doc="Not in 0.8.2.2. The security protocol of each listener: `CLIENT:SSL,"
        "INTERNAL:PLAINTEXT`. Protocols are `PLAINTEXT`, `SSL`, `SASL_PLAINTEXT`, `SASL_SSL`.",
    )
    inter_broker_listener_name: str | None = dotted(
        None,
        default_text="the listener named as `security.inter.broker.protocol`",
        doc="Not in 0.8.2.2. The listener that brokers use for connections to each other.",
    )
    security_inter_broker_protocol: str | None = dotted(
        None,
        default_text="`PLAINTEXT`",
        doc="Not in 0.8.2.2. The same by the name of its protocol; only one of the two may be set.",
    )
    listener_name: Mapping[str, Mapping[str, str]] = dotted(
        {},
        OWN,
        default_text="none",
        doc="Not in 0.8.2.2. `listener.name.NAME.KEY`, with the listener's name in lower case, is "
        "the setting KEY for that listener alone, as `listener.name.client.ssl.client.auth`.",
    )
    ssl_client_auth: str = dotted(
        "none",
        kind=one_of("none", "requested", "required"),
        doc="Not in 0.8.2.2. Whether clients need a certificate on a listener with TLS.",
    )
    ssl_principal_mapping_rules: str = dotted(
        "DEFAULT",
        doc="Not in 0.8.2.2. Makes a user's name of the subject of a client's certificate, which "
        "is in the order of RFC 2253: `RULE:pattern/replacement/` with `L` or `U` behind it for "
        "small or large letters, `DEFAULT` for the subject itself. The first that matches counts.",
    )
    socket_send_buffer_bytes: int = dotted(102400, doc="SO_SNDBUF of the broker's connections.")
    socket_receive_buffer_bytes: int = dotted(102400, doc="SO_RCVBUF of the broker's connections.")
    socket_request_max_bytes: int = dotted(
        104857600,
        low=1,
        doc="Largest request accepted; a connection that announces a larger one is closed.",
    )
    max_connections_per_ip: int = dotted(
        INT_MAX, low=1, doc="Connections allowed from one address."
    )
    max_connections_per_ip_overrides: Mapping[str, int] = dotted(
        {}, MAP, doc="Other limits for single addresses or hosts: `host:limit,host:limit`."
    )
    max_connections: int = dotted(
        INT_MAX,
        low=1,
        doc="Not in 0.8.2.2. Connections in all, or with `listener.name.NAME.` before it those of "
        "a listener. At the limit, new ones wait until one closes. Where there are several "
        "listeners, brokers come in nevertheless: the client that was idle for the longest is "
        "closed.",
    )
    max_connection_creation_rate: int = dotted(
        INT_MAX,
        low=1,
        doc="Not in 0.8.2.2. New connections a second, of all, or with `listener.name.NAME.` "
        "before it of a listener. Those that are too fast are accepted later.",
    )
    connections_max_idle_ms: int = dotted(
        600000, LONG, doc="A connection without traffic for this long is closed."
    )

    quota_producer_default: int = dotted(
        LONG_MAX,
        LONG,
        low=1,
        doc="Not in 0.8.2.2. Bytes a second that each client id may produce, where no other quota "
        "holds (`kafka-configs.sh` sets those).",
    )
    quota_consumer_default: int = dotted(
        LONG_MAX,
        LONG,
        low=1,
        doc="Not in 0.8.2.2. Bytes a second that each client id may fetch, where no other quota "
        "holds.",
    )
    quota_window_num: int = dotted(
        11,
        low=1,
        doc="Not in 0.8.2.2. Quotas limit the average rate: a client may use at once what it left "
        "unused in one window less than these.",
    )
    quota_window_size_seconds: int = dotted(
        1, low=1, doc="Not in 0.8.2.2. The length of such a window."
    )
    replication_quota_window_num: int = dotted(
        11,
        low=1,
        doc="Not in 0.8.2.2. As `quota.window.num`, for the throttled rates of replication.",
    )
    replication_quota_window_size_seconds: int = dotted(
        1, low=1, doc="Not in 0.8.2.2. The length of such a window."
    )
    connection_failed_authentication_delay_ms: int = dotted(
        100,
        low=0,
        doc="Not in 0.8.2.2. Time by which the answer to a failed login is held back. It must be "
        "below `connections.max.idle.ms`.",
    )
    connections_max_reauth_ms: int = dotted(
        0,
        LONG,
        low=0,
        doc="Not in 0.8.2.2. The lifetime of a session after a SASL login; 0: it has no end. "
        "Clients since Kafka 2.2 log in again on the same connection before. The next request "
        "after it closes the connection. `listener.name.NAME.MECHANISM.` before it, all in lower "
        "case, is the lifetime for a listener and mechanism.",
    )
    sasl_enabled_mechanisms: tuple[str, ...] = dotted(
        (),
        LIST,
        default_text="none",
        doc="Not in 0.8.2.2. The mechanisms with which clients may log in on listeners of "
        "`SASL_PLAINTEXT` and `SASL_SSL`: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`. Users of "
        "SCRAM are in ZooKeeper, where `kafka-configs` puts them.",
    )
    sasl_mechanism_inter_broker_protocol: str = dotted(
        "PLAIN", doc="Not in 0.8.2.2. The mechanism with which this broker logs in at others."
    )
    sasl_jaas_config: str | None = dotted(
        None,
        PASSWORD,
        default_text="none",
        doc="Not in 0.8.2.2. The login module of the mechanisms, as in Kafka. `username` and "
        "`password` are the broker's own for logins at other brokers, `user_NAME` is the password "
        "of a user of PLAIN. `listener.name.NAME.MECHANISM.sasl.jaas.config`, all in lower case, "
        "comes before it.",
    )

    num_partitions: int = dotted(1, low=1, doc="Partitions of a topic created on first use.")
    log_dir: str = dotted(
        "/tmp/kafka-logs", doc="Data directory (or several) when `log.dirs` is absent."
    )
    log_dirs: tuple[str, ...] = dotted(
        kind=LIST,
        derive=lambda config: parse_list(config.log_dir),
        default_text="`log.dir`",
        doc="Data directories, comma-separated; a new partition goes to the one with the fewest.",
    )
    log_segment_bytes: int = dotted(
        1073741824,
        low=14,
        doc="Size at which a segment is closed, and the largest message set of one append.",
    )
    log_roll_hours: int = dotted(168, low=1, doc="Age at which a segment is closed.")
    log_roll_ms: int = dotted(
        kind=INT,
        low=1,
        derive=lambda config: config.log_roll_hours * _HOUR_MS,
        default_text="`log.roll.hours`",
        doc="Age at which a segment is closed; wins over the hours.",
    )
    log_roll_jitter_hours: int = dotted(
        0,
        low=0,
        doc="Largest random amount taken off that age, so that segments do not all roll at once.",
    )
    log_roll_jitter_ms: int = dotted(
        kind=INT,
        low=0,
        derive=lambda config: config.log_roll_jitter_hours * _HOUR_MS,
        default_text="`log.roll.jitter.hours`",
        doc="The same in milliseconds; wins over the hours.",
    )
    log_retention_hours: int = dotted(
        168,
        low=1,
        doc="Time since the last write to a segment after which it is deleted, the newest one too.",
    )
    log_retention_minutes: int = dotted(
        kind=INT,
        low=1,
        derive=lambda config: config.log_retention_hours * 60,
        default_text="`log.retention.hours`",
        doc="The same in minutes; wins over the hours.",
    )
    log_retention_ms: int = dotted(
        kind=INT,
        low=1,
        derive=lambda config: config.log_retention_minutes * _MINUTE_MS,
        default_text="`log.retention.minutes`",
        doc="The same in milliseconds; wins over minutes and hours. -1 is refused.",
    )
    log_retention_bytes: int = dotted(
        -1,
        LONG,
        doc="Size a partition may grow to before old segments are deleted; negative: no limit.",
    )
    log_retention_check_interval_ms: int = dotted(
        300000,
        LONG,
        low=1,
        doc="How often segments are checked for deletion; first 30 s after the start.",
    )
    log_cleanup_policy: str = dotted(
        "delete",
        doc="`compact` keeps the last message of each key, `compact,delete` also deletes old "
        "segments; any other word deletes old segments.",
    )
    log_cleaner_threads: int = dotted(
        1, low=1, doc="Threads that compact logs. 0, with which 0.8.2.2 does not start, is refused."
    )
    log_cleaner_io_max_bytes_per_second: float = dotted(
        DOUBLE_MAX,
        DOUBLE,
        doc="Most bytes that all cleaner threads together read and write in a second.",
    )
    log_cleaner_dedupe_buffer_size: int = dotted(
        524288000,
        LONG,
        low=0,
        doc="Memory for all cleaner threads' key maps, in bytes; over 1 MiB for each thread.",
    )
    log_cleaner_io_buffer_size: int = dotted(
        524288, low=0, doc="Memory for all cleaner threads' read and write buffers, in bytes."
    )
    log_cleaner_io_buffer_load_factor: float = dotted(
        0.9, doc="How full a key map may get. The key is spelt as in 0.8.2.2."
    )
    log_cleaner_backoff_ms: int = dotted(
        15000, LONG, low=0, doc="Pause when no log needs cleaning."
    )
    log_cleaner_min_cleanable_ratio: float = dotted(
        0.5, doc="A log is compacted once its uncleaned share is above this."
    )
    log_cleaner_min_compaction_lag_ms: int = dotted(
        0,
        LONG,
        low=0,
        doc="Not in 0.8.2.2. How long a message stays as it is before it may be compacted.",
    )
    log_cleaner_max_compaction_lag_ms: int = dotted(
        LONG_MAX,
        LONG,
        low=1,
        doc="Not in 0.8.2.2. After how long a message is compacted whatever the uncleaned share.",
    )
    log_cleaner_enable: bool = dotted(
        True, doc="Compact logs. If false (the default of 0.8.2.2), compacted topics only grow."
    )
    log_cleaner_delete_retention_ms: int = dotted(
        86400000, LONG, doc="How long a compacted log keeps the markers of deleted keys."
    )
    log_scrub_interval_ms: int = dotted(
        604800000,
        LONG,
        low=0,
        doc="How often each closed segment is read and compared with its checksum; 0: never.",
    )
    log_scrub_bytes_per_second: int = dotted(
        10485760, LONG, low=1, doc="Most bytes that are read for that check in a second."
    )
    log_index_size_max_bytes: int = dotted(
        10485760,
        low=4,
        doc="Size of a segment's index file; rounded down to a multiple of 8, so at least 8.",
    )
    log_index_interval_bytes: int = dotted(
        4096, low=0, doc="Bytes of log between two index entries."
    )
    log_flush_interval_messages: int = dotted(
        LONG_MAX, LONG, low=1, doc="Messages a log may take before it is flushed to disk."
    )
    log_segment_delete_delay_ms: int = dotted(
        60000,
        LONG,
        low=0,
        doc="How long a deleted segment's files stay on disk under another name.",
    )
    log_flush_scheduler_interval_ms: int = dotted(
        LONG_MAX, LONG, doc="How often logs are checked for data that waits too long to be flushed."
    )
    log_flush_interval_ms: int = dotted(
        kind=LONG,
        derive=value_of("log.flush.scheduler.interval.ms"),
        default_text="`log.flush.scheduler.interval.ms`",
        doc="How long a message may wait to be flushed to disk.",
    )
    log_flush_offset_checkpoint_interval_ms: int = dotted(
        60000,
        low=0,
        doc="How often the recovery points (where recovery would start) are written to disk.",
    )
    log_compressed_sets: str = dotted(
        "verbatim",
        kind=one_of(*COMPRESSED_SETS),
        doc="Not in 0.8.2.2. `verbatim` stores compressed messages as the producer sent them, "
        "without repacking. `normalised` repacks them at append with absolute offsets, as "
        "0.8.2.2 does: set it if 0.8.2.2 brokers share the cluster or will open the same data "
        "directories.",
    )
    log_message_format_version: str = dotted(
        "3.0",
        RELEASE,
        doc="Not in 0.8.2.2. The newest message format to store, named by a release: `0.8.2` (or "
        "any before 0.10.0) is format 0, `0.10.0` to `0.10.2` is format 1, and from `0.11.0` on it "
        "is format 2. Messages of later formats are converted when they are produced, and refused "
        "if they have headers. Set it to `0.8.2` if the data is to go back to 0.8.2.2.",
    )
    log_message_timestamp_type: str = dotted(
        CREATE_TIME,
        kind=one_of(*TIMESTAMP_TYPES),
        doc="Not in 0.8.2.2. `CreateTime` stores the timestamps of producers, `LogAppendTime` the "
        "time at which the leader appends a message. Messages of format 0 have neither.",
    )
    log_message_timestamp_difference_max_ms: int = dotted(
        LONG_MAX,
        LONG,
        low=0,
        doc="Not in 0.8.2.2. Messages whose `CreateTime` is further from the broker's clock than "
        "this are refused (error 32).",
    )
    log_message_timestamp_before_max_ms: int = dotted(
        LONG_MAX,
        LONG,
        low=0,
        doc="Not in 0.8.2.2. As `log.message.timestamp.difference.max.ms`, for the past alone.",
    )
    log_message_timestamp_after_max_ms: int = dotted(
        LONG_MAX,
        LONG,
        low=0,
        doc="Not in 0.8.2.2. As `log.message.timestamp.difference.max.ms`, for the future alone.",
    )
    log_message_downconversion_enable: bool = dotted(
        True,
        doc="Not in 0.8.2.2. Convert messages of formats 1 and 2 for consumers that do not read "
        "them, such as those of 0.8. If false they get error 35, and those of 0.8 error 17.",
    )
    log_message_downconversion_isolation_level: str = dotted(
        READ_UNCOMMITTED,
        kind=one_of(*ISOLATION_LEVELS),
        doc="Not in 0.8.2.2. The messages that consumers before 0.11, such as those of 0.8, get of "
        "transactions. `read_uncommitted`: all messages, as in Kafka. `read_committed`: none of "
        "open and aborted transactions, as later consumers may choose for themselves.",
    )
    log_rebuilt_sets_bytes: int = dotted(
        4294967296,
        LONG,
        low=0,
        doc="Not in 0.8.2.2. Most bytes that compressed messages may take in each data directory, "
        "beside the logs, in the form that consumers need. They are made in the background for the "
        "newest segments, so that consumers that are far behind get them at full speed. They go "
        "first when the disk fills up: a tenth of it stays free. 0: none.",
    )
    num_recovery_threads_per_data_dir: int = dotted(
        1,
        low=1,
        doc="Threads for each data directory that load logs at start and flush them at stop.",
    )
    api_versions_enable: bool = dotted(
        True,
        doc="Not in 0.8.2.2. Answer ApiVersions and serve later versions of APIs, as clients of "
        "Kafka 0.10 and later expect, while no broker of 0.8.2.2 is registered.",
    )
    producer_id_expiration_ms: int = dotted(
        86400000,
        low=1,
        doc="Not in 0.8.2.2. Time after which an idempotent producer that sends nothing is "
        "forgotten. If it then sends a batch again that was stored, the batch is stored twice.",
    )
    transaction_max_timeout_ms: int = dotted(
        900000,
        low=1,
        doc="Not in 0.8.2.2. The longest transaction.timeout.ms that a producer may have.",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = dotted(
        10000,
        low=1,
        doc="Not in 0.8.2.2. How often transactions whose time is over are aborted.",
    )
    transactional_id_expiration_ms: int = dotted(
        604800000,
        low=1,
        doc="Not in 0.8.2.2. Time after which a transactional.id that nobody uses is forgotten.",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = dotted(
        3600000,
        low=1,
        doc="Not in 0.8.2.2. How often transactional ids that have expired are forgotten.",
    )
    transaction_partition_verification_enable: bool = dotted(
        True,
        doc="Not in 0.8.2.2. Ask the coordinator, before the first batch of a transaction is "
        "stored in a partition, whether the transaction includes it.",
    )
    transaction_state_log_num_partitions: int = dotted(
        50,
        low=1,
        doc="Not in 0.8.2.2. Partitions of __transaction_state. Must never change: transactional "
        "ids are placed by it.",
    )
    transaction_state_log_replication_factor: int = dotted(
        3,
        SHORT,
        low=1,
        doc="Not in 0.8.2.2. Replicas of __transaction_state; fewer if fewer brokers are live at "
        "its creation.",
    )
    transaction_state_log_min_isr: int = dotted(
        2,
        low=1,
        doc="Not in 0.8.2.2. min.insync.replicas of __transaction_state; fewer if it has fewer "
        "replicas.",
    )
    transaction_state_log_segment_bytes: int = dotted(
        104857600, low=1, doc="Not in 0.8.2.2. Segment size of __transaction_state."
    )
    auto_create_topics_enable: bool = dotted(
        True, doc="Create a topic that a client asks about and that does not exist."
    )
    min_insync_replicas: int = dotted(
        1,
        low=1,
        doc="Replicas that must be in sync for a produce with acks -1. The default for topics "
        "without their own; 0.8.2.2 reads it and then ignores it (KAFKA-2114).",
    )

    controller_socket_timeout_ms: int = dotted(
        30000, doc="Socket timeout of the controller's connections to brokers."
    )
    controller_message_queue_size: int = dotted(
        INT_MAX, doc="Requests the controller may have waiting for one broker."
    )
    default_replication_factor: int = dotted(1, doc="Replicas of a topic created on first use.")
    replica_lag_time_max_ms: int = dotted(
        10000,
        LONG,
        doc="A follower that has not reported its end offset for this long leaves the isr.",
    )
    replica_lag_max_messages: int = dotted(
        4000, LONG, doc="A follower that is this many messages behind leaves the isr."
    )
    replica_socket_timeout_ms: int = dotted(
        30000, low=0, doc="Socket timeout of a follower's connection to its leader."
    )
    replica_socket_receive_buffer_bytes: int = dotted(
        65536, doc="SO_RCVBUF of a follower's connection to its leader."
    )
    replica_fetch_max_bytes: int = dotted(
        1048576, doc="Bytes a follower asks for in each partition; at least `message.max.bytes`."
    )
    replica_fetch_wait_max_ms: int = dotted(
        500, doc="How long a leader may hold a follower's fetch; at most `replica.lag.time.max.ms`."
    )
    replica_fetch_min_bytes: int = dotted(
        1, doc="Bytes a leader waits for before it answers a follower's fetch."
    )
    num_replica_fetchers: int = dotted(1, doc="Fetchers for each leader a broker follows.")
    replica_high_watermark_checkpoint_interval_ms: int = dotted(
        5000, LONG, doc="How often high watermarks are written to disk."
    )
    fetch_purgatory_purge_interval_requests: int = dotted(
        1000, doc="Waiting fetches after which 0.8.2.2 removes answered ones from memory."
    )
    producer_purgatory_purge_interval_requests: int = dotted(
        1000, doc="Waiting produces after which 0.8.2.2 removes answered ones from memory."
    )
    auto_leader_rebalance_enable: bool = dotted(
        True, doc="Let the controller give leadership back to preferred replicas."
    )
    leader_imbalance_per_broker_percentage: int = dotted(
        10,
        doc="Percentage of a broker's partitions led elsewhere above which leadership moves back.",
    )
    leader_imbalance_check_interval_seconds: int = dotted(
        300, doc="How often that percentage is checked."
    )
    unclean_leader_election_enable: bool = dotted(
        True, doc="Let a replica outside the isr lead when no other is alive, at the price of data."
    )

    controlled_shutdown_enable: bool = dotted(True, doc="Move leadership away before stopping.")
    controlled_shutdown_max_retries: int = dotted(
        3, doc="Attempts to move leadership before stopping anyway."
    )
    controlled_shutdown_retry_backoff_ms: int = dotted(5000, doc="Pause between those attempts.")

    offset_metadata_max_bytes: int = dotted(
        4096, doc="Longest metadata text of an offset commit, in characters as in 0.8.2.2."
    )
    offsets_load_buffer_size: int = dotted(
        5242880, low=1, doc="Bytes read at once while the offsets topic is loaded."
    )
    offsets_topic_replication_factor: int = dotted(
        3,
        SHORT,
        low=1,
        doc="Replicas of the offsets topic; fewer if fewer brokers are live at its creation.",
    )
    offsets_topic_num_partitions: int = dotted(
        50,
        low=1,
        doc="Partitions of the offsets topic. Must never change: groups are placed by it.",
    )
    offsets_topic_segment_bytes: int = dotted(
        104857600, low=1, doc="Segment size of the offsets topic; 0.8.2.2 always uses the default."
    )
    offsets_topic_compression_codec: int = dotted(
        0,
        CODEC,
        default_text="none",
        doc="Codec of the messages in the offsets topic: a name, or a number from 0 to 3.",
    )
    offsets_retention_minutes: int = dotted(1440, low=1, doc="How long a committed offset is kept.")
    offsets_retention_check_interval_ms: int = dotted(
        600000,
        LONG,
        low=1,
        doc="How often committed offsets are checked for their age; 0.8.2.2 always uses "
        "the default.",
    )
    offsets_commit_timeout_ms: int = dotted(
        5000, low=1, doc="How long a commit waits for its replicas."
    )
    offsets_commit_required_acks: int = dotted(
        -1, SHORT, low=-1, doc="Acks a commit needs; at most `offsets.topic.replication.factor`."
    )
    group_min_session_timeout_ms: int = dotted(
        6000,
        low=1,
        doc="The shortest session timeout that a member of a coordinated group may ask for. "
        "Not in 0.8.2.2.",
    )
    group_max_session_timeout_ms: int = dotted(
        1800000,
        low=1,
        doc="The longest session timeout that a member of a coordinated group may ask for. "
        "Not in 0.8.2.2.",
    )
    authorizer_class_name: str = dotted(
        "",
        kind=one_of("", *AUTHORIZERS),
        doc="Not in 0.8.2.2. The authorizer: none, or the one that decides by the rules in "
        "ZooKeeper, under either of the names that later releases have for it.",
    )
    super_users: str = dotted(
        "",
        doc="Not in 0.8.2.2. Principals that may do everything, separated by semicolons: "
        "`User:admin;User:CN=broker,O=org`.",
    )
    allow_everyone_if_no_acl_found: bool = dotted(
        False,
        doc="Not in 0.8.2.2. With an authorizer: whether everybody may do everything with a "
        "resource that has no rules, instead of super users only.",
    )
    authorizer_zookeeper_url: str = dotted(
        derive=value_of("zookeeper.connect"),
        default_text="`zookeeper.connect`",
        doc="Not in 0.8.2.2. Where the rules are. Another place than `zookeeper.connect` is not "
        "supported.",
    )
    group_initial_rebalance_delay_ms: int = dotted(
        3000,
        low=0,
        doc="How long an empty group waits for more members before its first rebalance; 50 ms "
        "at least. Not in 0.8.2.2.",
    )
    group_max_size: int = dotted(
        2147483647, low=1, doc="Members that a coordinated group may have. Not in 0.8.2.2."
    )
    group_member_metadata_max_bytes: int = dotted(
        1048576,
        low=1,
        doc="Bytes of metadata that a member of a coordinated group may join with. Not in 0.8.2.2.",
    )
    group_members_max_bytes: int = dotted(
        268435456,
        low=1,
        doc="Memory for all groups that a broker coordinates, with their members' metadata and "
        "assignments. More members get error 15. Committed offsets do not count. Not in 0.8.2.2.",
    )
    delete_topic_enable: bool = dotted(
        False, doc="Carry out topic deletions. If false, topics are only marked for deletion."
    )

    zookeeper_connect: str = dotted(
        doc="ZooKeeper's servers, `host:port,host:port`, with an optional `/chroot` at the end."
    )
    zookeeper_session_timeout_ms: int = dotted(
        6000, doc="Time without heartbeats after which ZooKeeper considers the broker dead."
    )
    zookeeper_connection_timeout_ms: int = dotted(
        kind=INT,
        derive=value_of("zookeeper.session.timeout.ms"),
        default_text="`zookeeper.session.timeout.ms`",
        doc="How long to wait for the first connection to ZooKeeper.",
    )
    zookeeper_sync_time_ms: int = dotted(2000, doc="How far a ZooKeeper server may lag its leader.")

    http_port: int = dotted(
        -1,
        low=-1,
        high=65535,
        doc="Port of /metrics, /health/live, /health/ready, /jmx and /clients over HTTP; -1: none.",
    )
    http_host: str = dotted(
        "127.0.0.1", doc="Address that they are served on; 0.0.0.0 stands for all."
    )
    http_allowed_hosts: tuple[str, ...] = dotted(
        (),
        LIST,
        doc="Names of this machine that clients may use there, beside addresses, http.host, "
        "host.name, advertised.host.name and localhost; * stands for all.",
    )
    metrics_bean_names: bool = dotted(
        False,
        doc="Have /metrics give counts and idle shares under the names of their beans too, such as "
        "`kafka_server_brokertopicmetrics_messagesinpersec`: many dashboards ask for these.",
    )
    metrics_partitions: bool = dotted(
        True,
        doc="Have /metrics give series of each partition. With thousands of partitions they are "
        "most of the page.",
    )
    kafka_metrics_reporters: tuple[str, ...] = dotted((), LIST, doc="Classes that report metrics.")
    kafka_metrics_polling_interval_secs: int = dotted(10, doc="How often metrics are reported.")
    kafka_csv_metrics_reporter_enabled: bool = dotted(False, doc="Write metrics to CSV files.")
    kafka_csv_metrics_dir: str = dotted("kafka_metrics", doc="Directory of those files.")
    kafka_mx4jenable: bool = setting(
        "kafka_mx4jenable", False, doc="System property: MX4J page of 0.8.2.2. No effect."
    )
    mx4jaddress: str = dotted("0.0.0.0", doc="System property: address of that page. No effect.")
    mx4jport: int = dotted(8082, doc="System property: port of that page. No effect.")

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> BrokerConfig:
        """Parse texts; unknown keys are ignored. Raises ConfigError."""
        own = own_settings(properties)
        config = super().from_properties(properties)
        return config.replace(listener_name=own) if own else config

    @property
    def writes_csv_metrics(self) -> bool:
        return (
            self.kafka_csv_metrics_reporter_enabled
            and "kafka.metrics.KafkaCSVMetricsReporter" in self.kafka_metrics_reporters
        )

    @property
    def quota_seconds(self) -> float:
        """For so long an unused quota is saved."""
        return float(max(self.quota_window_num - 1, 1) * self.quota_window_size_seconds)

    @property
    def replication_quota_seconds(self) -> float:
        """For so long an unused rate of replication is saved."""
        windows = max(self.replication_quota_window_num - 1, 1)
        return float(windows * self.replication_quota_window_size_seconds)

    def of_listener(self, name: str) -> BrokerConfig:
        """The settings as they are for one listener. Raises ConfigError."""
        own = self.listener_name.get(name.lower(), {})
        changes = {
            attribute: described._replace(key=f"{OWN_PREFIX}{name.lower()}.{described.key}").parse(
                own[described.key]
            )
            for attribute, described in self.settings().items()
            if described.key in own
        }
        return self.replace(**changes) if changes else self

    def _check_authorizer(self) -> None:
        for user in self.super_principals:
            if not user.partition(":")[2]:
                raise ConfigError(
                    f"super.users has value {self.super_users}: {user} is not a principal, such "
                    "as User:alice."
                )
        if self.authorizer_class_name and self.authorizer_zookeeper_url != self.zookeeper_connect:
            raise ConfigError(
                f"authorizer.zookeeper.url has value {self.authorizer_zookeeper_url} which is not "
                "the value of zookeeper.connect; the rules of another ZooKeeper are not read."
            )

    @property
    def super_principals(self) -> tuple[str, ...]:
        """The principals of super.users. Names hold commas, so semicolons separate them."""
        return tuple(user for each in self.super_users.split(";") if (user := each.strip()))

    def check(self) -> None:
        names = {each.listener.lower() for each in self.resolved_listeners().bound}
        for name in self.listener_name:
            if name not in names:
                raise ConfigError(
                    f"{OWN_PREFIX}{name} is the beginning of a setting, and there is no "
                    f"listener {name.upper()}."
                )
        self._check_authorizer()
        if not self.log_dirs:
            raise ConfigError("log.dirs has no value; at least one directory is needed.")
        per_thread = self.log_cleaner_dedupe_buffer_size // self.log_cleaner_threads
        if per_thread <= 1024 * 1024:
            raise ConfigError(
                f"log.cleaner.dedupe.buffer.size has value {self.log_cleaner_dedupe_buffer_size} "
                "which must be at least 1MB per cleaner thread."
            )
        self._check_range(
            "replica.fetch.max.bytes",
            self.message_max_bytes,
            INT_MAX,
            "the low end is message.max.bytes",
        )
        self._check_range(
            "replica.fetch.wait.max.ms",
            INT.low,
            self.replica_lag_time_max_ms,
            "the high end is replica.lag.time.max.ms: followers would leave the isr while waiting",
        )
        if self.connections_max_idle_ms > 0:
            self._check_range(
                "connection.failed.authentication.delay.ms",
                0,
                self.connections_max_idle_ms - 1,
                "the high end is below connections.max.idle.ms",
            )
        if self.queued_max_request_bytes != -1:
            self._check_range(
                "queued.max.request.bytes",
                self.socket_request_max_bytes,
                LONG_MAX,
                "the low end is socket.request.max.bytes; -1 stands for no limit",
            )
        self._check_range(
            "offsets.commit.required.acks",
            -1,
            self.offsets_topic_replication_factor,
            "the high end is offsets.topic.replication.factor",
        )

    def _check_range(self, key: str, low: int | None, high: int, why: str) -> None:
        value = getattr(self, key.replace(".", "_"))
        if not (low is None or low <= value) or value > high:
            raise ConfigError(
                f"{key} has value {value} which is not in the range ({low},{high}); {why}."
            )
