"""The settings of a consumer, each declared once (kafka.consumer.ConsumerConfig)."""

from __future__ import annotations

from collections.abc import Mapping

from kafka08.client.ids import check_id
from kafka08.client.security import ClientSecurity
from kafka08.common import ISOLATION_LEVELS, READ_COMMITTED, READ_UNCOMMITTED
from kafka08.errors import ConfigError
from kafka08.settings.settings import BOOLEAN, INT, STRING, dotted, log_overrides, one_of, value_of
from kafka08.settings.zookeeper import ZooKeeperSecurity

_LOWER = STRING._replace(parse=str.lower)
ZOOKEEPER = "zookeeper"
KAFKA = "kafka"
SMALLEST = "smallest"
LARGEST = "largest"


class ConsumerConfig(ClientSecurity, ZooKeeperSecurity):
    """Consumer settings by attribute; ``ConsumerConfig.from_properties`` reads dotted keys."""

    group_id: str = dotted(doc="the group; its members share the partitions")
    zookeeper_connect: str = dotted(
        doc="host:port, comma-separated, with an optional /chroot at the end"
    )
    zookeeper_session_timeout_ms: int = dotted(
        6000, doc="time without heartbeats after which this member leaves the group"
    )
    zookeeper_connection_timeout_ms: int = dotted(
        kind=INT,
        derive=value_of("zookeeper.session.timeout.ms"),
        default_text="zookeeper.session.timeout.ms",
        doc="how long to wait for a ZooKeeper connection",
    )
    zookeeper_sync_time_ms: int = dotted(2000, doc="how far a ZooKeeper follower may lag")
    consumer_id: str | None = dotted(
        None, doc="fixed member id instead of a generated one; for tests"
    )
    client_id: str = dotted(
        derive=value_of("group.id"), default_text="group.id", doc="the client id sent to brokers"
    )
    isolation_level: str = dotted(
        READ_UNCOMMITTED,
        kind=one_of(*ISOLATION_LEVELS),
        doc="read_committed: no messages of transactions that are open or aborted; needs "
        "api.versions.request",
    )
    api_versions_request: bool = dotted(
        kind=BOOLEAN,
        derive=lambda config: config.reads_committed,
        default_text="true if isolation.level is read_committed",
        doc="fetch timestamps and headers: for clusters in which every broker answers ApiVersions",
    )
    socket_timeout_ms: int = dotted(30000, doc="timeout of a request; not below fetch.wait.max.ms")
    socket_receive_buffer_bytes: int = dotted(65536, doc="receive buffer of a broker connection")
    fetch_message_max_bytes: int = dotted(1048576, doc="bytes asked for per partition and fetch")
    fetch_message_limit_bytes: int = dotted(
        kind=INT,
        derive=value_of("fetch.message.max.bytes"),
        default_text="fetch.message.max.bytes",
        doc="a larger message is fetched alone, if it is not larger than this",
    )
    fetch_min_bytes: int = dotted(1, doc="bytes a broker waits for before it answers a fetch")
    fetch_wait_max_ms: int = dotted(100, doc="how long a broker waits for fetch.min.bytes")
    num_consumer_fetchers: int = dotted(1, low=1, doc="fetching tasks per broker")
    queued_max_message_chunks: int = dotted(2, low=1, doc="fetched chunks a stream buffers")
    partition_assignment_strategy: str = dotted("range", doc="range or roundrobin")
    rebalance_max_retries: int = dotted(4, doc="attempts at a rebalance before it fails")
    rebalance_backoff_ms: int = dotted(
        kind=INT,
        derive=value_of("zookeeper.sync.time.ms"),
        default_text="zookeeper.sync.time.ms",
        doc="pause between attempts at a rebalance",
    )
    refresh_leader_backoff_ms: int = dotted(
        200, doc="pause between searches for a partition's leader"
    )
    auto_commit_enable: bool = dotted(True, doc="commit positions in the background")
    auto_commit_interval_ms: int = dotted(60000, doc="time between two background commits")
    commit_handed_out: bool = dotted(
        False,
        doc="count a message as consumed when it is returned, as 0.8.2.2 does, instead of when "
        "the next one is requested",
    )
    auto_offset_reset: str = dotted(
        LARGEST,
        kind=one_of(SMALLEST, LARGEST),
        doc="where to start if no offset is stored, or the stored one is out of range",
    )
    consumer_timeout_ms: int = dotted(
        -1, doc="how long a stream waits for a message; negative: without limit"
    )
    exclude_internal_topics: bool = dotted(
        True,
        doc="keep __consumer_offsets and __transaction_state out of filter subscriptions",
    )
    offsets_storage: str = dotted(
        ZOOKEEPER,
        _LOWER._replace(choices=(ZOOKEEPER, KAFKA)),
        doc="where the group's offsets are kept",
    )
    dual_commit_enabled: bool = dotted(
        kind=BOOLEAN,
        derive=lambda config: config.offsets_storage == KAFKA,
        default_text="true if offsets.storage is kafka",
        doc="write offsets to ZooKeeper as well while a group moves to Kafka",
    )
    offsets_channel_backoff_ms: int = dotted(
        1000, doc="pause before the coordinator is asked again"
    )
    offsets_channel_socket_timeout_ms: int = dotted(
        10000, doc="timeout of requests to the coordinator"
    )
    offsets_commit_max_retries: int = dotted(5, doc="how often the last commit of all is retried")
    serializer_encoding: str = dotted("UTF8", doc="charset of the string decoder")

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ConsumerConfig:
        """As in ``Settings``; unknown keys are logged as warnings."""
        log_overrides(properties, cls.keys())
        return super().from_properties(properties)

    @property
    def reads_committed(self) -> bool:
        return self.isolation_level == READ_COMMITTED

    def check(self) -> None:
        check_id("group.id", self.group_id)
        check_id("client.id", self.client_id)
        check_id("consumer.id", self.consumer_id)
        if self.reads_committed and not self.api_versions_request:
            raise ConfigError(
                f"isolation.level has value {READ_COMMITTED}, which needs api.versions.request=true"
            )
        if self.fetch_wait_max_ms > self.socket_timeout_ms:
            raise ConfigError(
                f"fetch.wait.max.ms has value {self.fetch_wait_max_ms} which is above "
                f"socket.timeout.ms ({self.socket_timeout_ms})."
            )
