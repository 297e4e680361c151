"""UpdateOffsetsInZK: sets a group's offsets of a topic to the beginning or the end of its logs.

Mirrors kafka.tools.UpdateOffsetsInZK: ``earliest`` or ``latest``, a consumer's properties file
(group.id, zookeeper.connect), a topic. The group's members should be stopped: they commit over it.
"""

from __future__ import annotations

from contextlib import closing

from kafka08 import admin
from kafka08.client.security import PLAIN, ClientSecurity, runtime_for
from kafka08.common import EARLIEST_TIME, LATEST_TIME, TopicPartition
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.simple import SimpleConsumer
from kafka08.groups import nodes
from kafka08.network.channel import Channel, Connect
from kafka08.settings import properties
from tools import admin_command
from tools.options import ToolError
from zk import registry
from zk.client import ZkClient

_USAGE = "USAGE: kafka.tools.UpdateOffsetsInZK$ [earliest | latest] consumer.properties topic"
_TIMES = {"earliest": EARLIEST_TIME, "latest": LATEST_TIME}


def main(argv: list[str]) -> int:
    if len(argv) < 3 or argv[0] not in _TIMES:
        print(_USAGE)
        return 1
    config = ConsumerConfig.from_properties(properties.load(argv[1]))
    with closing(admin_command.connect(config.zookeeper_connect, config)) as client:
        count = update(client, config.group_id, argv[2], _TIMES[argv[0]], security=config)
    print(f"updated the offset for {count} partitions")
    return 0


def update(
    client: ZkClient,
    group: str,
    topic: str,
    time: int,
    channel: Connect = Channel,
    security: ClientSecurity = PLAIN,
) -> int:
    """Store each partition's offset at ``time``; how many partitions there are,
    0 for a topic that does not exist.

    Raises KafkaError or OSError at the first partition whose leader does not answer.
    """
    assignment = admin.fetch_assignment(client, topic) or {}
    for partition in sorted(assignment):
        tp = TopicPartition(topic, partition)
        offset = _offset(client, tp, time, security, channel)
        print(f"updating partition {partition} with new offset: {offset}")
        nodes.store_offset(client, group, tp, offset)
    return len(assignment)


def _offset(
    client: ZkClient, tp: TopicPartition, time: int, security: ClientSecurity, channel: Connect
) -> int:
    state = admin.fetch_partition_state(client, *tp)
    if state is None:
        raise ToolError("Broker None is unavailable. Cannot issue getOffsetsBefore request")
    broker = registry.read_broker(client, state.leader, security.security_protocol)
    if broker is None:
        raise ToolError(f"Broker information for broker id {state.leader} does not exist in ZK")
    with SimpleConsumer(
        broker.host,
        broker.port,
        timeout_ms=10000,
        client_id="UpdateOffsetsInZk",
        runtime=runtime_for(security),
        channel=channel,
    ) as consumer:
        return consumer.earliest_or_latest(tp, time)
