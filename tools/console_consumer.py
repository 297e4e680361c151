"""kafka-console-consumer: print what a group member consumes (kafka.tools.ConsoleConsumer).

With --bootstrap-server, as in later releases, it reads from brokers alone, outside any group.
"""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from kafka08 import properties as java_properties
from kafka08.consumer.config import LARGEST, SMALLEST, ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.filters import Blacklist, TopicFilter, Whitelist
from kafka08.consumer.standalone import NO_OFFSET, StandaloneConsumer
from kafka08.consumer.stream import KafkaStream
from kafka08.settings import log_overrides
from tools.broker_list import broker_list
from tools.formatters import DEFAULT_FORMATTER, MessageFormatter, formatter_named
from tools.options import Arguments, OptionError, OptionParser, parse_key_values, run_tool
from tools.output import abandon_stdout, stdout
from zk import znodes
from zk.client import ZkClient
from zk.errors import ZkError

logger = logging.getLogger("kafka.tools.ConsoleConsumer$")

ZK_TIMEOUT_MS = 30000
SELECTORS = ("topic", "whitelist", "blacklist")


class Printing(NamedTuple):
    """How to go about printing; ``max_messages`` None means for ever."""

    formatter: MessageFormatter
    max_messages: int | None
    skip_on_error: bool


class Counter:
    """Messages printed; outlives the exception that ends the printing."""

    def __init__(self, text: str = "Consumed {} messages") -> None:
        self.messages = 0
        self._text = text

    def report(self) -> None:
        print(self._text.format(self.messages), file=sys.stderr, flush=True)


def main(argv: list[str]) -> int:
    parser = _parser()
    if not argv:
        parser.usage_and_exit()
    try:
        args = parser.parse(argv)
    except OptionError as error:
        print(error, file=sys.stderr)
        return 1
    if args.has("bootstrap-server"):
        return _read_from_brokers(parser, args)
    parser.check_required(args, "zookeeper")
    given = [name for name in SELECTORS if args.has(name)]
    if len(given) != 1:
        parser.usage_and_exit("Exactly one of whitelist/blacklist/topic is required.")
    kind = Blacklist if given == ["blacklist"] else Whitelist
    topic_filter = kind(args.value(given[0]))
    settings, own_group = _settings(args)
    group, connect = settings["group.id"], args.value("zookeeper")
    if args.has("delete-consumer-offsets"):
        _delete_group(connect, group)
    elif args.has("from-beginning") and _has_offsets(connect, group):
        print(
            f"Found previous offset information for this group {group}. Please use "
            "--delete-consumer-offsets to delete previous offsets metadata",
            file=sys.stderr,
        )
        return 1
    log_overrides(settings, ConsumerConfig.keys())
    config = ConsumerConfig.from_properties(settings)
    printing = _printing(args)
    try:
        with ConsumerConnector(config) as connector:
            return _consume(connector, topic_filter, printing)
    finally:
        if own_group:
            _delete_group(connect, group)


def _printing(args: Arguments) -> Printing:
    maximum = args.value("max-messages")
    return Printing(
        formatter_named(args.value("formatter"), parse_key_values(args.values("property"))),
        None if maximum is None or maximum < 0 else maximum,
        args.has("skip-message-on-error"),
    )


def _read_from_brokers(parser: OptionParser, args: Arguments) -> int:
    parser.check_required(args, "topic")
    parser.check_invalid(args, "bootstrap-server", "zookeeper", "whitelist", "blacklist")
    endpoints = broker_list(parser, args.value("bootstrap-server"))
    settings, _ = _settings(args)
    settings |= parse_key_values(args.values("consumer-property"))
    if args.has("timeout-ms"):
        settings["consumer.timeout.ms"] = str(args.value("timeout-ms"))
    start = args.value("offset")
    if start == "earliest":
        settings["auto.offset.reset"] = SMALLEST
    if start not in ("earliest", "latest") and not start.isdecimal():
        parser.usage_and_exit(
            f"The provided offset value '{start}' is incorrect. Valid values are 'earliest', "
            "'latest', or a non-negative long."
        )
    offset = int(start) if start.isdecimal() else NO_OFFSET
    config = ConsumerConfig.from_properties(settings)
    printing = _printing(args)
    counter = Counter("Processed a total of {} messages")
    with StandaloneConsumer(endpoints, config) as consumer:
        return _print_all(
            lambda: consumer.stream(args.value("topic"), args.value("partition"), offset),
            printing,
            counter,
        )


def _settings(args: Arguments) -> tuple[dict[str, str], bool]:
    """The consumer's properties, and whether the group is one made up for this run."""
    settings: dict[str, str] = {}
    if args.has("consumer.config"):
        settings = java_properties.load(args.value("consumer.config"))
    own_group = "group.id" not in settings
    if own_group:
        settings["group.id"] = f"console-consumer-{random.randrange(100000)}"
    settings["auto.offset.reset"] = SMALLEST if args.has("from-beginning") else LARGEST
    settings["zookeeper.connect"] = args.value("zookeeper") or ""
    return settings, own_group


def _consume(connector: ConsumerConnector, topic_filter: TopicFilter, printing: Printing) -> int:
    """Print as a member of the group until told to stop; the exit status."""

    def join() -> KafkaStream:
        (stream,) = connector.create_message_streams_by_filter(topic_filter)
        return stream

    def done() -> None:
        if connector.config.auto_commit_enable:
            # The last message was printed, though no further one was asked for.
            connector.commit_offsets()

    return _print_all(join, printing, Counter(), done)


def _print_all(
    start: Callable[[], KafkaStream],
    printing: Printing,
    counter: Counter,
    done: Callable[[], None] = lambda: None,
) -> int:
    """The exit status. ``done`` is called when all messages asked for were printed."""
    try:
        _print_messages(start(), printing, counter)
        done()
    except BrokenPipeError:
        print("Unable to write to standard out, closing consumer.", file=sys.stderr)
        abandon_stdout()
        counter.report()
        return 1
    except Exception:
        logger.exception("Error processing message, stopping consumer: ")
    except (KeyboardInterrupt, SystemExit):
        counter.report()
        raise
    finally:
        printing.formatter.close()
    counter.report()
    return 0


def _print_messages(stream: KafkaStream, printing: Printing, counter: Counter) -> None:
    output = stdout()
    for message in islice(stream, printing.max_messages):
        try:
            printing.formatter.write_to(message.key, message.value, output)
            output.flush()
            counter.messages += 1
        except BrokenPipeError:
            raise
        except Exception:
            if not printing.skip_on_error:
                raise
            logger.exception("Error processing message, skipping this message: ")


def _zookeeper(connect: str) -> ZkClient:
    return ZkClient(
        connect,
        session_timeout_ms=ZK_TIMEOUT_MS,
        connection_timeout_ms=ZK_TIMEOUT_MS,
        create_chroot=False,
    )


def _has_offsets(connect: str, group: str) -> bool:
    client = _zookeeper(connect)
    try:
        return client.start().exists(znodes.consumer_offsets_path(group)) is not None
    except ZkError:
        return False
    finally:
        client.close()


def _delete_group(connect: str, group: str) -> None:
    """Failures do not matter: what remains is clutter (ZkUtils.maybeDeletePath)."""
    client = _zookeeper(connect)
    try:
        client.start().delete_recursive(znodes.group_path(group))
    except ZkError:
        pass
    finally:
        client.close()


def _parser() -> OptionParser:
    parser = OptionParser(
        "The console consumer is a tool that reads data from Kafka and outputs it to standard "
        "output."
    )
    parser.option("topic", "The topic to consume, as a regular expression.", arg="topic")
    parser.option("whitelist", "The topics to consume, as a regular expression.", arg="whitelist")
    parser.option(
        "blacklist", "The topics not to consume, as a regular expression.", arg="blacklist"
    )
    parser.option(
        "zookeeper",
        "REQUIRED: Where ZooKeeper is: host:port, several separated by commas, a chroot at the "
        "end.",
        arg="urls",
    )
    parser.option(
        "bootstrap-server",
        "Read from the brokers of this one, without ZooKeeper and outside any group.",
        arg="server to connect to",
    )
    parser.option("new-consumer", "Accepted; implied by --bootstrap-server.")
    parser.option(
        "partition", "With --bootstrap-server: the only partition.", arg="partition", kind=int
    )
    parser.option(
        "offset",
        "With --bootstrap-server: where to start, a number, earliest or latest.",
        arg="consume offset",
        default="latest",
    )
    parser.option(
        "timeout-ms",
        "With --bootstrap-server: end when no message comes for so long.",
        arg="timeout_ms",
        kind=int,
    )
    parser.option(
        "consumer-property",
        "With --bootstrap-server: a consumer setting, key=value.",
        arg="consumer_prop",
        repeatable=True,
    )
    parser.option("consumer.config", "A file of consumer properties.", arg="config file")
    parser.option(
        "formatter", "The class that prints messages.", arg="class", default=DEFAULT_FORMATTER
    )
    parser.option("property", "A setting of the formatter.", arg="prop", repeatable=True)
    parser.option(
        "delete-consumer-offsets", "Delete what ZooKeeper keeps of the group at the start."
    )
    parser.option(
        "from-beginning",
        "Without a stored offset start at the first message there is, not at the end.",
    )
    parser.option(
        "max-messages",
        "How many messages to consume; without it there is no end.",
        arg="num_messages",
        kind=int,
    )
    parser.option(
        "skip-message-on-error", "Go on with the next message when one cannot be printed."
    )
    parser.option("csv-reporter-enabled", "Accepted; no metrics are written.")
    parser.option(
        "metrics-dir",
        "Accepted together with --csv-reporter-enabled.",
        arg="metrics dictory",
    )
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main))
