"""kafka-simple-consumer-shell: print one partition from one replica.

Mirrors kafka.tools.SimpleConsumerShell.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, NamedTuple

from kafka08.client.cluster import ClusterClient
from kafka08.client.security import runtime_of
from kafka08.common import EARLIEST_TIME, Broker, TopicPartition
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import raise_for_code
from kafka08.message.entry import AnyMessage
from kafka08.message.sets import iter_messages
from kafka08.protocol.schemas import DEBUG_REPLICA_ID
from kafka08.runtime import Runtime
from tools import admin_command
from tools.broker_list import broker_list
from tools.console.formatters import DEFAULT_FORMATTER, MessageFormatter, formatter_named
from tools.options import Arguments, OptionParser, parse_key_values
from tools.output import abandon_stdout, stdout

logger = logging.getLogger("kafka.tools.SimpleConsumerShell$")

LEADER = -1
MIN_BYTES = 1


class ShellError(Exception):
    """The request cannot be met; the text goes to stderr, the exit status is 1."""


class Reading(NamedTuple):
    """The partition to read, and how its messages are shown."""

    tp: TopicPartition
    fetch_size: int
    max_wait_ms: int
    max_messages: int
    print_offsets: bool
    skip_on_error: bool
    stop_at_end: bool


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
    runtime = runtime_of(admin_command.command_config(args))
    try:
        broker = _replica(args, tp, runtime)
        offset = _start(args, broker, tp, runtime)
    except ShellError as refusal:
        print(refusal, file=sys.stderr)
        return 1
    reading = Reading(
        tp,
        args.value("fetchsize"),
        args.value("max-wait-ms"),
        args.value("max-messages"),
        args.has("print-offsets"),
        args.has("skip-message-on-error"),
        args.has("no-wait-at-logend"),
    )
    with SimpleConsumer(
        broker.host,
        broker.port,
        timeout_ms=10000,
        client_id=args.value("clientId"),
        runtime=runtime,
    ) as consumer:
        try:
            _read(consumer, reading, offset, formatter)
        except BrokenPipeError:
            print("Unable to write to standard out, closing consumer.", file=sys.stderr)
            abandon_stdout()
            return 1
        except Exception:
            logger.exception(
                "Error consuming topic, partition, replica (%s, %d, %d)",
                tp.topic,
                tp.partition,
                args.value("replica"),
            )
        finally:
            formatter.close()
    return 0


def _replica(args: Arguments, tp: TopicPartition, runtime: Runtime) -> Broker:
    """The broker to read from."""
    endpoints = broker_list(PARSER, args.value("broker-list"))
    replica = args.value("replica")
    with ClusterClient(
        endpoints,
        client_id=args.value("clientId"),
        timeout_ms=args.value("max-wait-ms"),
        runtime=runtime,
    ) as cluster:
        response = cluster.fetch_metadata([tp.topic])
    if [found.topic for found in response.topics] != [tp.topic]:
        raise ShellError(
            f"Error: no valid topic metadata for topic: {tp.topic}, what we get from server is "
            f"only: {response.topics}"
        )
    partitions = {p.partition: p for p in response.topics[0].partitions}
    if tp.partition not in partitions:
        raise ShellError(f"Error: partition {tp.partition} does not exist for topic {tp.topic}")
    found = partitions[tp.partition]
    brokers = {broker.node_id: Broker(*broker[:3]) for broker in response.brokers}
    if replica == LEADER:
        if found.leader not in brokers:
            raise ShellError(
                "Error: user speicifies to fetch from leader for partition "
                f"({tp.topic}, {tp.partition}) which has not been elected yet"
            )
        return brokers[found.leader]
    if replica not in found.replicas or replica not in brokers:
        raise ShellError(
            f"Error: replica {replica} does not exist for partition ({tp.topic}, {tp.partition})"
        )
    return brokers[replica]


def _start(args: Arguments, broker: Broker, tp: TopicPartition, runtime: Runtime) -> int:
    """The first offset to read."""
    offset: int = args.value("offset")
    if offset < EARLIEST_TIME:
        raise ShellError(f"Invalid starting offset: {offset}")
    if offset >= 0:
        return offset
    with SimpleConsumer(
        broker.host,
        broker.port,
        timeout_ms=30000,
        client_id=args.value("clientId"),
        runtime=runtime,
    ) as consumer:
        try:
            return consumer.earliest_or_latest(tp, offset, replica_id=DEBUG_REPLICA_ID)
        except Exception as error:
            raise ShellError(
                f"Error in getting earliest or latest offset due to: {error}"
            ) from error


def _read(
    consumer: SimpleConsumer, reading: Reading, offset: int, formatter: MessageFormatter
) -> None:
    left = reading.max_messages
    tp = reading.tp
    while left > 0:
        entry = consumer.fetch(
            {tp: offset},
            reading.fetch_size,
            max_wait_ms=reading.max_wait_ms,
            min_bytes=MIN_BYTES,
            replica_id=DEBUG_REPLICA_ID,
        )[tp]
        raise_for_code(entry.error)
        start = offset
        records: Any = entry.message_set
        for message in iter_messages(records):
            if message.offset >= offset and left > 0:
                offset = message.offset + 1
                left -= _show(message, reading, formatter)
        if offset == start and reading.stop_at_end:
            print(
                f"Terminating. Reached the end of partition ({tp.topic}, {tp.partition}) "
                f"at offset {offset}",
                flush=True,
            )
            return


def _show(message: AnyMessage, reading: Reading, formatter: MessageFormatter) -> int:
    """Print one message; how many were (0 when it is skipped)."""
    output = stdout()
    try:
        if reading.print_offsets:
            output.write(b"next offset = %d\n" % (message.offset + 1))
        formatter.write_to(message.key, message.value, output)
        output.flush()
        return 1
    except BrokenPipeError:
        raise
    except Exception:
        if not reading.skip_on_error:
            raise
        logger.exception("Error processing message, skipping this message: ")
        return 0
