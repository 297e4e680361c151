"""kafka-simple-consumer-shell: print one partition from one replica.

Mirrors kafka.tools.SimpleConsumerShell.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import partial

from kafka08.client.cluster import ClusterClient
from kafka08.client.reading import PartitionReader, Position
from kafka08.common import EARLIEST_TIME, Broker, TopicPartition
from kafka08.consumer.simple import SimpleConsumer
from kafka08.message.entry import AnyMessage
from kafka08.message.sets import iter_messages
from kafka08.protocol.schemas import DEBUG_REPLICA_ID
from tools import admin_command, brokers
from tools.console.formatters import DEFAULT_FORMATTER, MessageFormatter, formatter_named
from tools.options import Arguments, OptionParser, abandon_stdout, parse_key_values

logger = logging.getLogger("kafka.tools.SimpleConsumerShell$")

LEADER = -1


class ShellError(Exception):
    """The request cannot be met; the text goes to stderr, the exit status is 1."""


PARSER = OptionParser(
    "A low-level tool for fetching data directly from a particular replica.",
    f"""
--broker-list <hostname:port,...,hostname:port>  REQUIRED: The brokers to ask for metadata.
--topic <topic>  REQUIRED: The topic to read.
--partition <Integer: partition>  REQUIRED: The partition to read. (default: 0)
--replica <Integer: replica id>  The broker to read from; -1 is the leader. (default: {LEADER})
--offset <Long: consume offset>  Where to start; -2 is the earliest offset, -1 the latest.
    (default: {EARLIEST_TIME})
--clientId <clientId>  The name to give the broker. (default: SimpleConsumerShell)
--fetchsize <Integer: fetchsize>  Bytes per fetch request. (default: 1048576)
--formatter <class>  The class that prints messages. (default: {DEFAULT_FORMATTER})
--property <prop>  A setting of the formatter.
--print-offsets  Print the offset after each message.
--max-wait-ms <Integer: ms>  How long a fetch request waits. (default: 1000)
--max-messages <Integer: max-messages>  How many messages to read. (default: 2147483647)
--skip-message-on-error  Go on with the next message when one cannot be printed.
--no-wait-at-logend  Stop at the end of the log instead of waiting for more.
""",
    later=admin_command.COMMAND_CONFIG,
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv, "broker-list", "topic", "partition")
    formatter = formatter_named(args.value("formatter"), parse_key_values(args.values("property")))
    tp = TopicPartition(args.value("topic"), args.value("partition"))
    client_id, runtime = args.value("clientId"), brokers.runtime(args)
    try:
        with brokers.cluster_client(PARSER, args, "broker-list", client_id, runtime) as cluster:
            broker = _replica(cluster, tp, args.value("replica"))
        connect = partial(
            SimpleConsumer, broker.host, broker.port, client_id=client_id, runtime=runtime
        )
        offset = _start(connect, tp, args.value("offset"))
    except ShellError as refusal:
        print(refusal, file=sys.stderr)
        return 1
    with connect(timeout_ms=10000) as consumer:
        reader = PartitionReader(
            consumer.call,
            tp,
            Position(offset, args.value("fetchsize")),
            max_wait_ms=args.value("max-wait-ms"),
            replica_id=DEBUG_REPLICA_ID,
        )
        try:
            _print_all(reader, tp, args, formatter)
        except BrokenPipeError:
            print("Unable to write to standard out, closing consumer.", file=sys.stderr)
            abandon_stdout()
            return 1
        except Exception:
            logger.exception(
                "Error consuming topic, partition, replica (%s, %d, %d)", *tp, args.value("replica")
            )
        finally:
            formatter.close()
    return 0


def _replica(cluster: ClusterClient, tp: TopicPartition, replica: int) -> Broker:
    """The broker to read from."""
    response = cluster.fetch_metadata([tp.topic])
    if [each.topic for each in response.topics] != [tp.topic]:
        raise ShellError(
            f"Error: no valid topic metadata for topic: {tp.topic}, what we get from server is "
            f"only: {response.topics}"
        )
    partitions = {p.partition: p for p in response.topics[0].partitions}
    if tp.partition not in partitions:
        raise ShellError(f"Error: partition {tp.partition} does not exist for topic {tp.topic}")
    partition = partitions[tp.partition]
    live = {broker.node_id: Broker(*broker[:3]) for broker in response.brokers}
    if replica == LEADER:
        if partition.leader not in live:
            raise ShellError(
                "Error: user speicifies to fetch from leader for partition "
                f"({tp.topic}, {tp.partition}) which has not been elected yet"
            )
        return live[partition.leader]
    if replica not in partition.replicas or replica not in live:
        raise ShellError(
            f"Error: replica {replica} does not exist for partition ({tp.topic}, {tp.partition})"
        )
    return live[replica]


def _start(connect: Callable[..., SimpleConsumer], tp: TopicPartition, offset: int) -> int:
    """The first offset to read."""
    if offset < EARLIEST_TIME:
        raise ShellError(f"Invalid starting offset: {offset}")
    if offset >= 0:
        return offset
    with connect(timeout_ms=30000) as consumer:
        try:
            return consumer.earliest_or_latest(tp, offset, replica_id=DEBUG_REPLICA_ID)
        except Exception as error:
            raise ShellError(
                f"Error in getting earliest or latest offset due to: {error}"
            ) from error


def _print_all(
    reader: PartitionReader, tp: TopicPartition, args: Arguments, formatter: MessageFormatter
) -> None:
    left = args.value("max-messages")
    while left > 0:
        begin = reader.offset
        data = reader.read()
        for message in iter_messages(data):
            if message.offset >= begin and left > 0:
                left -= _show(message, args, formatter)
        if not data and args.has("no-wait-at-logend"):
            print(
                f"Terminating. Reached the end of partition ({tp.topic}, {tp.partition}) "
                f"at offset {begin}",
                flush=True,
            )
            return


def _show(message: AnyMessage, args: Arguments, formatter: MessageFormatter) -> int:
    """Print one message; how many were (0 when it is skipped)."""
    output = sys.stdout.buffer
    try:
        if args.has("print-offsets"):
            output.write(b"next offset = %d\n" % (message.offset + 1))
        formatter.write_to(message.key, message.value, output)
        output.flush()
        return 1
    except BrokenPipeError:
        raise
    except Exception:
        if not args.has("skip-message-on-error"):
            raise
        logger.exception("Error processing message, skipping this message: ")
        return 0
