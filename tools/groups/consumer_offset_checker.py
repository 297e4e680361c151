"""kafka-consumer-offset-checker: how far a group is, by partition, and who owns what.

Mirrors kafka.tools.ConsumerOffsetChecker: the coordinator is asked first, ZooKeeper's offsets
stand in for partitions it has nothing for. Failures are printed to stdout and exit 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from kafka08 import admin
from kafka08.client import requests
from kafka08.client.offsets import CoordinatorOffsets
from kafka08.client.retry import Retry
from kafka08.client.security import ClientSecurity, runtime_for
from kafka08.common import LATEST_TIME, TopicPartition
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import NO_ERROR, KafkaError, for_code
from kafka08.groups import nodes
from kafka08.groups.members import topic_partitions
from kafka08.network.channel import Channel, Connect
from kafka08.runtime import Runtime
from tools import admin_command
from tools.options import OptionParser
from zk import registry, znodes
from zk.client import ZkClient
from zk.errors import NoNodeError
from zk.znodes import MalformedNodeError

ROW = "{:<15} {:<30} {:<3} {:<15} {:<15} {:<15} {}"
CLIENT_ID = "ConsumerOffsetChecker"
_PATIENCE_MS = 30000

PARSER = OptionParser(
    "Check the offset of your consumers.",
    """
--zookeeper <>  ZooKeeper connect string. (default: localhost:2181)
--topic <>  Comma-separated list of consumer topics (all topics if absent).
--group <>  Consumer group.
--socket.timeout.ms <Integer>  Socket timeout to use when querying for offsets. (default: 6000)
--retry.backoff.ms <Integer>  Retry back-off to use for failed offset queries. (default: 3000)
--broker-info  Print broker info
--help  Print this message.
""",
    later=admin_command.COMMAND_CONFIG + admin_command.ZK_TLS_CONFIG_FILE.lstrip(),
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv, "group", "zookeeper")
    group, topics = args.value("group"), args.value("topic")
    timeout_ms, backoff_ms = args.value("socket.timeout.ms"), args.value("retry.backoff.ms")
    try:
        given = args.properties("command-config")
        with admin_command.session(args, given=given) as client:
            security = ClientSecurity.from_properties(given)
            with closing(OffsetChecker(client, group, timeout_ms, backoff_ms, security)) as checker:
                checker.run(topics.split(",") if topics is not None else None)
                if args.has("broker-info"):
                    checker.print_brokers()
    except BrokenPipeError:
        raise
    except (OSError, KafkaError, LookupError, ValueError) as error:
        # OSError without its number, as the JVM has it.
        print(f"Exiting due to: {getattr(error, 'strerror', None) or error}.")
        return admin_command.failure_status()
    return 0


class OffsetChecker:
    """Prints the rows of one group. Calls raise OSError and KafkaError."""

    def __init__(
        self,
        client: ZkClient,
        group: str,
        timeout_ms: int,
        backoff_ms: int,
        security: ClientSecurity,
        *,
        runtime: Runtime | None = None,
        channel: Connect = Channel,
    ) -> None:
        self._protocol = security.security_protocol
        self._zk = client
        self._group = group
        self._timeout_ms = timeout_ms
        self._backoff_ms = backoff_ms
        self._runtime = runtime or runtime_for(security)
        self._channel = channel
        self._consumers: dict[int, SimpleConsumer | None] = {}

    def run(self, topics: Iterable[str] | None) -> None:
        """Print the table for these topics; None means those the group has owner nodes for."""
        owners = znodes.consumer_owners_path(self._group)
        listed = self._zk.children(owners) if topics is None else list(topics)
        partitions = [
            TopicPartition(topic, number)
            for topic in dict.fromkeys(listed)
            for number in topic_partitions(self._zk, topic)
        ]
        offsets = self._offsets(partitions)
        print(ROW.format("Group", "Topic", "Pid", "Offset", "logSize", "Lag", "Owner"))
        for topic in sorted(listed):
            for tp in partitions:
                if tp.topic == topic:
                    self._print_partition(tp, offsets.get(tp))

    def print_brokers(self) -> None:
        print("BROKER INFO")
        for broker_id, consumer in sorted(self._consumers.items()):
            if consumer is not None:
                print(f"{broker_id} -> {consumer.host}:{consumer.port}")

    def close(self) -> None:
        for consumer in self._consumers.values():
            if consumer is not None:
                consumer.close()

    # --- offsets

    def _offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Next offsets, -1 for none in a topic that has some."""
        offsets = {}
        for tp, stored in self._ask_coordinator(partitions).items():
            if stored.error != NO_ERROR:
                java_class = for_code(stored.error).java_class
                print(f"Could not fetch offset for {tp} due to {java_class}.")
            elif stored.offset >= 0:
                offsets[tp] = stored.offset
            else:
                offsets[tp] = self._offset_in_zookeeper(tp)
        return offsets

    def _ask_coordinator(
        self, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, requests.StoredOffset]:
        coordinator = CoordinatorOffsets(
            self._group,
            lambda: registry.live_brokers(self._zk, self._protocol),
            client_id=CLIENT_ID,
            backoff_ms=self._backoff_ms,
            socket_timeout_ms=self._timeout_ms,
            runtime=self._runtime,
            channel=self._channel,
        )
        # The original asks without end.
        retry = Retry(self._runtime, self._backoff_ms / 1000, patience=_PATIENCE_MS / 1000)
        try:
            return retry.run(lambda: coordinator.stored(partitions))
        finally:
            coordinator.disconnect()

    def _offset_in_zookeeper(self, tp: TopicPartition) -> int:
        found = nodes.fetch_offset(self._zk, self._group, tp)
        if found is not None:
            return found
        if self._zk.exists(znodes.consumer_topic_offsets_path(self._group, tp.topic)) is None:
            raise NoNodeError(path=znodes.consumer_offset_path(self._group, *tp))
        return -1

    # --- rows

    def _print_partition(self, tp: TopicPartition, offset: int | None) -> None:
        owner = self._zk.get_if_exists(znodes.consumer_owner_path(self._group, *tp))
        state = admin.fetch_partition_state(self._zk, *tp)
        if state is None:
            print(f"No broker for partition {tp.topic} - {tp.partition}")
            return
        consumer = self._consumer(state.leader)
        if consumer is None:
            return
        size = consumer.earliest_or_latest(tp, LATEST_TIME)
        row = [self._group, *tp, "unknown" if offset is None else offset, size]
        row.append("unknown" if offset is None or offset < 0 else size - offset)
        row.append("none" if owner is None else owner[0].decode(errors="replace"))
        print(ROW.format(*row))

    def _consumer(self, broker_id: int) -> SimpleConsumer | None:
        """To a leader; None, said once, when it is not there."""
        if broker_id not in self._consumers:
            self._consumers[broker_id] = self._connect(broker_id)
        return self._consumers[broker_id]

    def _connect(self, broker_id: int) -> SimpleConsumer | None:
        node, reason = None, "null"
        try:
            node = registry.read_broker(self._zk, broker_id, self._protocol)
        except KafkaError as error:
            reason = str(error) if isinstance(error, MalformedNodeError) else reason
        if node is None:
            print(f"Could not parse broker info due to {reason}")
            return None
        return SimpleConsumer(
            node.host,
            node.port,
            timeout_ms=10000,
            receive_buffer_bytes=100000,
            client_id=CLIENT_ID,
            runtime=self._runtime,
            channel=self._channel,
        )
