"""kafka-console-consumer: print what a group member consumes (kafka.tools.ConsoleConsumer).

With --bootstrap-server, as in later releases, it reads from brokers alone. It shares partitions
with no member; --group says whose offsets, kept in Kafka, to go on from and to commit at the end.
"""

from __future__ import annotations

import contextlib
import logging
import random
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import islice
from typing import BinaryIO

from kafka08.client.requests import NO_OFFSET
from kafka08.consumer.config import LARGEST, SMALLEST, ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.filters import Blacklist, TopicFilter, Whitelist
from kafka08.consumer.standalone import StandaloneConsumer
from kafka08.consumer.stream import KafkaStream
from kafka08.message.consumed import Message
from kafka08.metrics.meters import Meter
from kafka08.settings.zookeeper import ZooKeeperSecurity
from tools.brokers import broker_list
from tools.console.deserializers import deserializer_named
from tools.console.formatters import DEFAULT_FORMATTER, MessageFormatter, formatter_named
from tools.console.line_headers import is_true
from tools.groups.nodes import delete_group, has_offsets
from tools.options import (
    Arguments,
    OptionError,
    OptionParser,
    abandon_stdout,
    parse_key_values,
)
from tools.perf.csv_metrics import CSV_OPTIONS, csv_metrics
from tools.shutdown import at_end, hold
from zk import znodes

logger = logging.getLogger("kafka.tools.ConsoleConsumer$")

CSV_PERIOD_S = 5
ZK_PATIENCE_S = 1.5
"""How long ZooKeeper may take to answer at the end."""
PRINT_PATIENCE_S = 1.0
"""How long the message that is being printed may take at the end; its reader may have stopped."""
OF_LATER_FETCHES = ("print.timestamp", "print.headers")
"""The formatter's properties that only fetches of later releases can serve."""
SELECTORS = ("topic", "whitelist", "blacklist")


class Printer:
    """Prints messages as the options say and counts them, until ``finish``, which another thread
    may call. ``report`` says at the end how many there were."""

    def __init__(self, args: Arguments, report: str = "Consumed {} messages") -> None:
        self.bytes = Meter()
        self.messages = Meter()
        properties = parse_key_values(args.values("property"))
        self._formatter = formatter_named(args.value("formatter"), properties)
        self._write = _writer(self._formatter)
        self._decode_key = deserializer_named(args.value("key-deserializer"))
        self._decode_value = deserializer_named(args.value("value-deserializer"))
        maximum = args.value("max-messages")
        self._maximum = None if maximum is None or maximum < 0 else maximum
        self._skips_errors = args.has("skip-message-on-error")
        self._says_events = args.has("enable-systest-events")
        self._report = report
        self._lock = threading.Lock()  # held while a message is printed
        self._finished = False

    def print_all(self, stream: KafkaStream) -> None:
        output = sys.stdout.buffer
        for message in islice(stream, self._maximum):
            with self._lock:
                if self._finished:
                    return
                self._print(message, output)

    def _print(self, message: Message, output: BinaryIO) -> None:
        try:
            key, value = message.key, message.value
            self._write(message, self._decode_key(key), self._decode_value(value), output)
            output.flush()
            self.messages.mark()
            self.bytes.mark(len(key or b"") + len(value or b""))
        except BrokenPipeError:
            raise
        except Exception:
            if not self._skips_errors:
                raise
            logger.exception("Error processing message, skipping this message: ")

    def finish(self) -> None:
        """Print no further message; say how many there were."""
        printed = self._lock.acquire(timeout=PRINT_PATIENCE_S)
        self._finished = True
        try:
            self._formatter.close()
            if self._says_events and printed:
                _say("shutdown_complete")
        finally:
            if printed:
                self._lock.release()
            print(self._report.format(self.messages.count), file=sys.stderr, flush=True)


def _writer(formatter: MessageFormatter) -> Callable[..., None]:
    """Its ``write_message``; one of 0.8's shape gets key and value alone."""
    write: Callable[..., None] | None = getattr(formatter, "write_message", None)
    return write or (lambda message, *rest: formatter.write_to(*rest))


PARSER = OptionParser(
    "The console consumer is a tool that reads data from Kafka and outputs it to standard output.",
    CSV_OPTIONS,
    f"""
--topic <topic>  The topic to consume, as a regular expression.
--whitelist <whitelist>  The topics to consume, as a regular expression.
--blacklist <blacklist>  The topics not to consume, as a regular expression.
--zookeeper <urls>  REQUIRED: Where ZooKeeper is: host:port, several separated by commas, a chroot
    at the end.
--consumer.config <config file>  A file of consumer properties.
--formatter <class>  The class that prints messages. (default: {DEFAULT_FORMATTER})
--property <prop>  A setting of the formatter.
--delete-consumer-offsets  Delete what ZooKeeper keeps of the group at the start.
--from-beginning  Without a stored offset start at the first message there is, not at the end.
--max-messages <Integer: num_messages>  How many messages to consume; without it there is no end.
--skip-message-on-error  Go on with the next message when one cannot be printed.
""",
    later="""
--bootstrap-server <server to connect to>  Read from the brokers of this one, without ZooKeeper and
    outside any group.
--group <consumer group id>  The group; with --bootstrap-server its offsets in Kafka are committed
    at the end.
--key-deserializer <deserializer for key>  Shows keys of this class, such as LongDeserializer, as
    text.
--value-deserializer <deserializer for values>  Shows values of this class as text.
--isolation-level <>  read_committed leaves out messages of transactions that are open or aborted.
    (default: read_uncommitted)
--enable-systest-events  Say shutdown_complete at the end.
--new-consumer  Accepted; implied by --bootstrap-server.
--partition <Integer: partition>  With --bootstrap-server: the only partition.
--offset <consume offset>  With --bootstrap-server: where to start, a number, earliest or latest.
    (default: latest)
--timeout-ms <Integer: timeout_ms>  With --bootstrap-server: end when no message comes for so long.
--consumer-property <consumer_prop>  A consumer setting, key=value; counts more than those of
    --consumer.config.
""",
)


def main(argv: list[str]) -> int:
    try:
        args = PARSER.parse_command(argv)
    except OptionError as error:
        print(error, file=sys.stderr)
        return 1
    if args.has("bootstrap-server"):
        return _read_from_brokers(args)
    PARSER.check_required(args, "zookeeper")
    given = [name for name in SELECTORS if args.has(name)]
    if len(given) != 1:
        PARSER.usage_and_exit("Exactly one of whitelist/blacklist/topic is required.")
    kind = Blacklist if given == ["blacklist"] else Whitelist
    topic_filter = kind(args.value(given[0]))
    settings, own_group = _settings(args)
    group, connect = settings["group.id"], args.value("zookeeper")
    security = ZooKeeperSecurity.from_properties(settings)
    if args.has("delete-consumer-offsets"):
        delete_group(connect, group, security)
    elif args.has("from-beginning") and has_offsets(connect, group, security):
        print(
            f"Found previous offset information for this group {group}. Please use "
            "--delete-consumer-offsets to delete previous offsets metadata",
            file=sys.stderr,
        )
        return 1
    config = ConsumerConfig.from_properties(settings)
    printer = Printer(args)
    connector = ConsumerConnector(config)
    with at_end(lambda: _leave(connector, own_group)), _reporting(args, printer):
        return _consume(connector, topic_filter, printer)


def _leave(connector: ConsumerConnector, own_group: bool) -> None:
    """Leave the group, and remove one that was made up for this run."""
    config = connector.config
    answers = connector.close(ZK_PATIENCE_S)
    if own_group and not (
        answers and delete_group(config.zookeeper_connect, config.group_id, config, ZK_PATIENCE_S)
    ):
        path = znodes.group_path(config.group_id)
        print(f"ZooKeeper does not answer: {path} may stay there", file=sys.stderr, flush=True)


def _reporting(args: Arguments, printer: Printer) -> AbstractContextManager[None]:
    """Metrics as CSV files, where they are wanted."""
    meters = {"MessagesPerSec": lambda: printer.messages, "BytesPerSec": lambda: printer.bytes}
    return csv_metrics(args, CSV_PERIOD_S, meters)


def _read_from_brokers(args: Arguments) -> int:
    PARSER.check_required(args, "topic")
    PARSER.check_invalid(args, "bootstrap-server", "zookeeper", "whitelist", "blacklist")
    endpoints = broker_list(PARSER, args.value("bootstrap-server"))
    settings, own_group = _settings(args)
    if args.has("timeout-ms"):
        settings["consumer.timeout.ms"] = str(args.value("timeout-ms"))
    start = args.value("offset")
    if start == "earliest":
        settings["auto.offset.reset"] = SMALLEST
    if start not in ("earliest", "latest") and not start.isdecimal():
        PARSER.usage_and_exit(
            f"The provided offset value '{start}' is incorrect. Valid values are 'earliest', "
            "'latest', or a non-negative long."
        )
    offset = int(start) if start.isdecimal() else NO_OFFSET
    config = ConsumerConfig.from_properties(settings)
    printer = Printer(args, "Processed a total of {} messages")
    group = None if own_group else config.group_id
    consumer = StandaloneConsumer(endpoints, config, group=group)
    with at_end(consumer.close), _reporting(args, printer):
        return _print_all(
            lambda: consumer.stream(args.value("topic"), args.value("partition"), offset),
            printer,
            consumer.commit_offsets,
        )


def _settings(args: Arguments) -> tuple[dict[str, str], bool]:
    """The consumer's properties, and whether the group is one made up for this run."""
    settings = args.properties("consumer.config")
    settings |= parse_key_values(args.values("consumer-property"))
    properties = parse_key_values(args.values("property"))
    if args.has("group"):
        settings["group.id"] = args.value("group")
    own_group = "group.id" not in settings
    if own_group:
        settings["group.id"] = f"console-consumer-{random.randrange(100000)}"
    settings["auto.offset.reset"] = SMALLEST if args.has("from-beginning") else LARGEST
    settings["zookeeper.connect"] = args.value("zookeeper") or ""
    settings["isolation.level"] = args.value("isolation-level")
    if any(is_true(properties, name) for name in OF_LATER_FETCHES):
        settings.setdefault("api.versions.request", "true")
    return settings, own_group


def _consume(connector: ConsumerConnector, topic_filter: TopicFilter, printer: Printer) -> int:
    """Print as a member of the group until asked to stop; the exit status."""

    def join() -> KafkaStream:
        (stream,) = connector.create_message_streams_by_filter(topic_filter)
        return stream

    def done() -> None:
        if connector.config.auto_commit_enable:
            # The last message was printed, though no further one was asked for.
            connector.commit_offsets()

    return _print_all(join, printer, done)


def _print_all(start: Callable[[], KafkaStream], printer: Printer, done: Callable[[], None]) -> int:
    """The exit status. ``done`` is called when all messages asked for were printed."""
    with at_end(printer.finish):
        try:
            printer.print_all(start())
            done()
        except BrokenPipeError:
            print("Unable to write to standard out, closing consumer.", file=sys.stderr)
            abandon_stdout()
            return 1
        except Exception:
            hold()
            logger.exception("Error processing message, stopping consumer: ")
    return 0


def _say(event: str) -> None:
    """For the system tests of later releases."""
    with contextlib.suppress(BrokenPipeError, ValueError):
        sys.stdout.buffer.write(f"{event}\n".encode())
        sys.stdout.buffer.flush()
