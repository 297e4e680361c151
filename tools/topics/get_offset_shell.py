"""GetOffsetShell: offsets of a topic's partitions before a time (kafka.tools.GetOffsetShell).

With --bootstrap-server, as in later releases, a time is that of messages, and not of segments.
"""

from __future__ import annotations

import sys

from kafka08.client.cluster import ClusterClient
from kafka08.client.requests import NO_OFFSET
from kafka08.common import LATEST_TIME, TopicPartition
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import KafkaError, later_name
from kafka08.runtime import Runtime
from kafka08.settings.settings import INT
from tools import admin_command, brokers
from tools.options import OptionParser

CLIENT_ID = "GetOffsetShell"

PARSER = OptionParser(
    "An interactive shell for getting consumer offsets.",
    """
--broker-list <hostname:port,...,hostname:port>  REQUIRED: The brokers to ask for metadata.
--topic <topic>  REQUIRED: The topic whose offsets to get.
--partitions <partition ids>  Partition ids, separated by commas; all partitions when not given.
    (default: )
--time <Long: timestamp/-1(latest)/-2(earliest)>  REQUIRED: Get the offsets before this time.
--offsets <Integer: count>  How many offsets to get. (default: 1)
--max-wait-ms <Integer: ms>  How long a request may take. (default: 1000)
""",
    later="""
--bootstrap-server <hostname:port,...,hostname:port>  In place of --broker-list: --time is then
    that of messages, from brokers with api.versions.enable. Without it: the latest offsets.
"""
    + admin_command.COMMAND_CONFIG.lstrip(),
)


def main(argv: list[str]) -> int:
    """Prints ``topic:partition:offset,offset``; partitions that cannot be asked go to stderr."""
    args = PARSER.parse_command(argv)
    by_message = args.has("bootstrap-server")
    servers = "bootstrap-server" if by_message else "broker-list"
    PARSER.check_required(args, servers, "topic", *(() if by_message else ("time",)))
    PARSER.check_invalid(args, "bootstrap-server", "broker-list", "offsets")
    topic = args.value("topic")
    numbers = [INT.parse(word) for word in args.value("partitions").split(",") if word]
    time = args.value("time") if args.has("time") else LATEST_TIME
    count = None if by_message and time >= 0 else args.value("offsets")
    runtime = brokers.runtime(args)
    with brokers.cluster_client(PARSER, args, servers, CLIENT_ID, runtime) as cluster:
        response = cluster.refresh([topic])
        if [each.topic for each in response.topics] != [topic]:
            print(
                f"Error: no valid topic metadata for topic: {topic},  probably the topic does "
                "not exist, run kafka-list-topic.sh to verify",
                file=sys.stderr,
            )
            return 1
        if name := later_name(response.topics[0].error):
            print(f"Error: topic {topic}: {name}", file=sys.stderr)
            return 1
        existing = [partition.partition for partition in response.topics[0].partitions]
        for partition in numbers or existing:
            if partition in existing:
                _print_offsets(cluster, TopicPartition(topic, partition), time, count, runtime)
            else:
                print(f"Error: partition {partition} does not exist", file=sys.stderr)
    return 0


def _print_offsets(
    cluster: ClusterClient, tp: TopicPartition, time: int, count: int | None, runtime: Runtime
) -> None:
    """``count`` is None for the first message since ``time``; not printed if there is none."""
    try:
        leader = cluster.known_leader(tp)
    except KafkaError:
        print(
            f"Error: partition {tp.partition} does not have a leader. Skip getting offsets",
            file=sys.stderr,
        )
        return
    with SimpleConsumer(
        leader.host,
        leader.port,
        timeout_ms=10000,
        receive_buffer_bytes=100000,
        client_id=CLIENT_ID,
        api_versions=count is None,
        runtime=runtime,
    ) as consumer:
        if count is not None:
            offsets = consumer.offsets_before(tp, time, count)
        elif (offset := consumer.offset_since(tp, time)) == NO_OFFSET:
            return
        else:
            offsets = [offset]
    print(f"{tp.topic}:{tp.partition}:{','.join(map(str, offsets))}")
