"""kafka-console-producer: lines of standard input become messages (kafka.tools.ConsoleProducer).

``--bootstrap-server``, ``--producer-property``, ``--producer.config``, ``--max-block-ms`` and
``--reader-property`` are of later releases.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple, Protocol

from kafka08.errors import KafkaError
from kafka08.producer.batch import log_error
from kafka08.producer.config import ASYNC, DEFAULT_ENCODER, SYNC, ProducerConfig
from kafka08.producer.event_handler import KeyedMessage
from kafka08.producer.kafka_config import KafkaProducerConfig
from kafka08.producer.kafka_producer import KafkaProducer
from kafka08.producer.producer import Producer
from kafka08.producer.serializers import load
from tools.brokers import broker_list
from tools.console.line_headers import HeadersParser, LineError, is_true
from tools.options import Arguments, OptionParser, parse_key_values
from tools.shutdown import at_end

LINE_READER = "kafka.tools.ConsoleProducer$LineMessageReader"
OLD_PARTITIONER = "kafka.producer.ByteArrayPartitioner"
# Options, and the settings of the old and of the new producer that they stand for.
_SETTINGS = (
    ("batch-size", "batch.num.messages", ""),
    ("message-send-max-retries", "message.send.max.retries", "retries"),
    ("retry-backoff-ms", "retry.backoff.ms", "retry.backoff.ms"),
    ("timeout", "queue.buffering.max.ms", "linger.ms"),
    ("queue-size", "queue.buffering.max.messages", ""),
    ("queue-enqueuetimeout-ms", "queue.enqueue.timeout.ms", ""),
    ("request-required-acks", "request.required.acks", "acks"),
    ("request-timeout-ms", "request.timeout.ms", "timeout.ms"),
    ("key-serializer", "key.serializer.class", ""),
    ("value-serializer", "serializer.class", ""),
    ("socket-buffer-size", "send.buffer.bytes", "send.buffer.bytes"),
    ("metadata-expiry-ms", "topic.metadata.refresh.interval.ms", "metadata.max.age.ms"),
    ("metadata-fetch-timeout-ms", "", "metadata.fetch.timeout.ms"),
    ("max-memory-bytes", "", "buffer.memory"),
    ("max-partition-memory-bytes", "", "batch.size"),
)


class MessageReader(Protocol):
    """kafka.tools.ConsoleProducer$MessageReader; made with a stream and the properties.

    It yields messages with ``topic``, ``value`` and ``key``, and maybe ``headers``.
    """

    def __iter__(self) -> Iterator[Any]: ...


class HeadedMessage(NamedTuple):
    """A KeyedMessage with headers."""

    topic: str
    value: bytes | None
    key: bytes | None
    headers: list[tuple[str, bytes | None]]


class LineMessageReader:
    """A message per line; with parse.key=true the key comes before the first key.separator.

    parse.headers and null.marker are of later releases. With parse.headers=true headers come before
    the first headers.delimiter, in front of the key. A key or value equal to null.marker is null.
    """

    def __init__(self, stream: BinaryIO, properties: Mapping[str, str]) -> None:
        self._stream = stream
        self._topic = properties["topic"]
        self._parse_key = is_true(properties, "parse.key")
        self._ignore_error = is_true(properties, "ignore.error")
        self._separator = properties.get("key.separator", "\t").encode()
        self._headers = HeadersParser(properties) if is_true(properties, "parse.headers") else None
        marker = properties.get("null.marker")
        self._null = None if marker is None else marker.encode()

    def __iter__(self) -> Iterator[KeyedMessage | HeadedMessage]:
        """Raises KafkaError for a line without a key or headers."""
        for number, line in enumerate(_lines(self._stream), 1):
            if self._headers is None:
                value, key = self._parsed(line, number)
                yield KeyedMessage(self._topic, value, key)
            else:
                headers, rest = self._headers.parse(line, number)
                value, key = self._parsed(rest, number)
                yield HeadedMessage(self._topic, value, key, headers)

    def _parsed(self, line: bytes, number: int) -> tuple[bytes | None, bytes | None]:
        """Value and key."""
        if not self._parse_key:
            return self._or_null(line), None
        key, separator, value = line.partition(self._separator)
        if separator:
            return self._or_null(value), self._or_null(key)
        if self._ignore_error:
            return self._or_null(line), None
        raise LineError(f"No key found on line {number}: {line.decode(errors='replace')}")

    def _or_null(self, data: bytes) -> bytes | None:
        return None if data == self._null else data


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    r"""Lines as java.io.BufferedReader has them: \n, \r and \r\n end one."""
    for line in stream:
        yield from line.removesuffix(b"\n").removesuffix(b"\r").split(b"\r")


PARSER = OptionParser(
    "Read data from standard input and publish it to Kafka.",
    f"""
--topic <topic>  REQUIRED: The topic to write to.
--broker-list <broker-list>  REQUIRED: The brokers to ask for metadata, as HOST1:PORT1,HOST2:PORT2.
--sync  Send each line at once and wait for the broker.
--compression-codec [compression-codec]  none, gzip, snappy or lz4; gzip when no codec is named.
--batch-size <Integer: size>  Messages in a batch, unless --sync. (default: 200)
--message-send-max-retries <Integer>  How often a message that failed is sent again before it is
    dropped. (default: 3)
--retry-backoff-ms <Integer>  How long to wait before metadata is refreshed and a message sent
    again. (default: 100)
--timeout <Integer: timeout_ms>  How long a message may wait for its batch to fill, in ms, unless
    --sync. (default: 1000)
--queue-size <Integer: queue_size>  How many messages may wait to be sent, unless --sync.
    (default: 10000)
--queue-enqueuetimeout-ms <Integer: queue enqueuetimeout ms>  How long to wait for room in the
    queue. (default: 2147483647)
--request-required-acks <Integer: request required acks>  Acknowledgements to wait for: 0, 1, or -1
    for the whole isr. (default: 0)
--request-timeout-ms <Integer: request timeout ms>  How long acknowledgements may take; more than 0.
    (default: 1500)
--metadata-expiry-ms <Long: metadata expiration interval>  The age in ms at which metadata is
    refreshed. (default: 300000)
--metadata-fetch-timeout-ms <Long: metadata fetch timeout>  How long to wait for the first metadata
    of a topic. (default: 60000)
--max-memory-bytes <Long: total memory in bytes>  The bytes that may wait to be sent.
    (default: 33554432)
--max-partition-memory-bytes <Long: memory in bytes per partition>  The bytes in a batch of one
    partition. (default: 16384)
--value-serializer <encoder_class>  The class that encodes values. (default: {DEFAULT_ENCODER})
--key-serializer <encoder_class>  The class that encodes keys. (default: {DEFAULT_ENCODER})
--line-reader <reader_class>  The class that reads messages from standard input; one a line by
    default. (default: {LINE_READER})
--socket-buffer-size <Integer: size>  The size of the TCP buffer. (default: 102400)
--property <prop>  A setting of the message reader, key=value.
--new-producer  Send with the new producer.
""",
    later="""
--reader-property <reader_prop>  The same as --property.
--old-producer  Send with the old producer, also with --bootstrap-server.
--bootstrap-server <server to connect to>  The brokers, instead of --broker-list; sends with the new
    producer.
--producer-property <producer_prop>  A setting of the producer, key=value.
--producer.config <config file>  A file of producer settings; --producer-property and options count
    more.
--max-block-ms <Long: max block on send>  How long a send of the new producer may wait for metadata
    or room. (default: 60000)
""",
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv)
    servers = "bootstrap-server" if args.has("bootstrap-server") else "broker-list"
    PARSER.check_required(args, "topic", servers)
    broker_list(PARSER, args.value(servers))
    new = uses_new_producer(args)
    if not new and is_true(_reader_properties(args), "parse.headers"):
        PARSER.usage_and_exit("parse.headers needs --bootstrap-server or --new-producer")
    properties = new_producer_properties(args) if new else producer_properties(args)
    reader = _reader(args, properties)
    try:
        (_send_new if new else _send_old)(reader, properties)
    except KafkaError as error:
        print(f"{error.java_class}: {error}", file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def uses_new_producer(args: Arguments) -> bool:
    """--bootstrap-server came with releases whose default is the new one."""
    return args.has("new-producer") or (
        args.has("bootstrap-server") and not args.has("old-producer")
    )


def _send_old(reader: MessageReader, properties: dict[str, str]) -> None:
    producer = Producer(ProducerConfig.from_properties(properties))
    with at_end(producer.close):
        for message in reader:
            producer.send(message)


def _send_new(reader: MessageReader, properties: dict[str, str]) -> None:
    """Send every message; later failures are logged, as by the original's ErrorLoggingCallback."""
    sync = properties.get("producer.type") == SYNC
    producer = KafkaProducer(KafkaProducerConfig.known(properties))
    with at_end(producer.close):
        for message in reader:
            future = producer.send(
                message.topic,
                message.value,
                message.key,
                callback=None if sync else log_error,
                headers=getattr(message, "headers", None),
            )
            if sync:
                future.result()


def _reader(args: Arguments, properties: Mapping[str, str]) -> MessageReader:
    name = args.value("line-reader")
    make: Callable[[BinaryIO, Mapping[str, str]], MessageReader]
    make = LineMessageReader if name == LINE_READER else load(name)
    return make(sys.stdin.buffer, properties)


def _given(args: Arguments) -> dict[str, str]:
    """The settings of --producer.config, overridden by those of --producer-property."""
    properties = parse_key_values(args.values("producer-property"))
    return args.properties("producer.config") | properties


def _reader_properties(args: Arguments) -> dict[str, str]:
    pairs = [*args.values("property"), *args.values("reader-property")]
    return {"topic": args.value("topic"), **parse_key_values(pairs)}


def _from_options(
    args: Arguments, options: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """The settings behind options; an option's default counts less than what was given."""
    return {
        key: str(args.value(option))
        for key, option in options.items()
        if key not in given or args.has(option)
    }


def _codec(args: Arguments) -> str:
    codec: str | None = args.value("compression-codec") if args.has("compression-codec") else "none"
    return codec or "gzip"


def _servers(args: Arguments) -> str:
    servers: str = args.value("bootstrap-server" if args.has("bootstrap-server") else "broker-list")
    return servers


def producer_properties(args: Arguments) -> dict[str, str]:
    """The old producer's settings; those of the reader are among them, as in the original."""
    given = _given(args)
    properties = {"partitioner.class": OLD_PARTITIONER, **given, **_reader_properties(args)}
    options = {key: option for option, key, _ in _SETTINGS if key}
    properties |= _from_options(args, options, given)
    properties["metadata.broker.list"] = _servers(args)
    if args.has("compression-codec") or "compression.codec" not in given:
        properties["compression.codec"] = _codec(args)
    if args.has("sync") or "producer.type" not in given:
        properties["producer.type"] = SYNC if args.has("sync") else ASYNC
    properties.setdefault("client.id", "console-producer")
    return properties


def new_producer_properties(args: Arguments) -> dict[str, str]:
    """The new producer's settings, and those of the reader."""
    given = _given(args)
    properties = {**given, **_reader_properties(args)}
    options = {key: option for option, _, key in _SETTINGS if key}
    if args.has("max-block-ms"):
        options["max.block.ms"] = "max-block-ms"
    properties |= _from_options(args, options, given)
    if args.has("bootstrap-server") and not args.has("request-required-acks"):
        properties["acks"] = given.get("acks", "1")  # the default of the releases that have it
    properties["bootstrap.servers"] = _servers(args)
    if args.has("compression-codec") or "compression.type" not in given:
        properties["compression.type"] = _codec(args)
    if is_true(properties, "parse.headers"):
        properties.setdefault("api.versions.request", "true")
    if args.value("queue-enqueuetimeout-ms") == 0:
        properties["block.on.buffer.full"] = "false"
    if args.has("sync"):
        properties["producer.type"] = SYNC
        if not args.has("timeout") and "linger.ms" not in given:
            # Nothing else comes to fill the batch of a line that is waited for.
            properties["linger.ms"] = "0"
    properties.setdefault("client.id", "console-producer")
    return properties
