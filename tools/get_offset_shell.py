"""GetOffsetShell: offsets of a topic's partitions before a time (kafka.tools.GetOffsetShell)."""

from __future__ import annotations

import sys

from kafka08.client.cluster import ClusterClient
from kafka08.common import TopicPartition
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import KafkaError
from tools.broker_list import broker_list
from tools.options import LONG, OptionParser, run_tool

CLIENT_ID = "GetOffsetShell"


def main(argv: list[str]) -> int:
    """Prints ``topic:partition:offset,offset``; partitions that cannot be asked go to stderr."""
    parser = _parser()
    if not argv:
        parser.usage_and_exit()
    args = parser.parse(argv)
    parser.check_required(args, "broker-list", "topic", "time")
    endpoints = broker_list(parser, args.value("broker-list"))
    topic = args.value("topic")
    wanted = [int(word) for word in args.value("partitions").split(",") if word]
    time, count = args.value("time"), args.value("offsets")
    with ClusterClient(
        endpoints, client_id=CLIENT_ID, timeout_ms=args.value("max-wait-ms")
    ) as cluster:
        response = cluster.refresh([topic])
        if [found.topic for found in response.topics] != [topic]:
            print(
                f"Error: no valid topic metadata for topic: {topic},  probably the topic does "
                "not exist, run kafka-list-topic.sh to verify",
                file=sys.stderr,
            )
            return 1
        known = [partition.partition for partition in response.topics[0].partitions]
        for partition in wanted or known:
            if partition in known:
                _print_offsets(cluster, TopicPartition(topic, partition), time, count)
            else:
                print(f"Error: partition {partition} does not exist", file=sys.stderr)
    return 0


def _parser() -> OptionParser:
    parser = OptionParser("An interactive shell for getting consumer offsets.")
    parser.option(
        "broker-list",
        "REQUIRED: The brokers to ask for metadata.",
        arg="hostname:port,...,hostname:port",
    )
    parser.option("topic", "REQUIRED: The topic whose offsets to get.", arg="topic")
    parser.option(
        "partitions",
        "Partition ids, separated by commas; all partitions when not given.",
        arg="partition ids",
        default="",
    )
    parser.option(
        "time",
        "REQUIRED: Get the offsets before this time.",
        arg="timestamp/-1(latest)/-2(earliest)",
        kind=LONG,
    )
    parser.option("offsets", "How many offsets to get.", arg="count", kind=int, default=1)
    parser.option("max-wait-ms", "How long a request may take.", arg="ms", kind=int, default=1000)
    return parser


def _print_offsets(cluster: ClusterClient, tp: TopicPartition, time: int, count: int) -> None:
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
    ) as consumer:
        offsets = consumer.offsets_before(tp, time, count)
    print(f"{tp.topic}:{tp.partition}:{','.join(map(str, offsets))}")


if __name__ == "__main__":
    sys.exit(run_tool(main))
