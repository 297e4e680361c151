"""How fast one partition can be fetched (kafka.tools.SimpleConsumerPerformance).

Unlike there, a fetch goes on where the last one ended; the original adds bytes to the offset.
"""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from kafka08.client.reading import PartitionReader, Position
from kafka08.common import EARLIEST_TIME, LATEST_TIME, TopicPartition
from kafka08.consumer.simple import SimpleConsumer
from kafka08.message.sets import iter_messages
from tools import admin_command, brokers
from tools.options import OptionParser
from tools.perf.perf_options import (
    PERF_OPTIONS,
    Consumption,
    perf_options,
    print_header,
    print_total,
    run_threads,
)

TIMEOUT_MS = 30000


class FetchPerf(Consumption):
    """Reads one partition to its end, or until it has enough."""

    error: Exception | None = None

    def run(self, reader: PartitionReader) -> None:
        try:
            self._read(reader)
        except Exception as error:
            self.error = error

    def _read(self, reader: PartitionReader) -> None:
        options = self._options
        since, last_messages, last_bytes = time.time(), 0, 0
        while self.messages <= options.messages:
            begin = reader.offset
            data = reader.read()
            if not data:
                return
            for message in iter_messages(data):
                if message.offset >= begin:
                    self.messages += 1
                    self.bytes += len(message.value or b"")
            if self.messages - last_messages > options.reporting_interval:
                if options.detailed:
                    self.report(last_messages, last_bytes, since)
                since, last_messages, last_bytes = time.time(), self.messages, self.bytes


PARSER = OptionParser(
    None,
    PERF_OPTIONS,
    """
--server <kafka://hostname:port>  REQUIRED: The broker to read from.
--topic <topic>  REQUIRED: The topic to read.
--from-latest  Start at the end, not at the first message there is.
--partition <Integer: partition>  The partition to read. (default: 0)
--fetch-size <Integer: bytes>  Bytes to ask for at once. (default: 1048576)
--clientId <clientId>  The name this client gives the broker.
    (default: SimpleConsumerPerformanceClient)
""",
    later=admin_command.COMMAND_CONFIG,
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv, "topic", "server")
    options = perf_options(PARSER, args)
    host, port = _server(args.value("server"))
    print_header(options)
    tp = TopicPartition(args.value("topic"), args.value("partition"))
    fetch_size = args.value("fetch-size")
    with SimpleConsumer(
        host,
        port,
        timeout_ms=TIMEOUT_MS,
        receive_buffer_bytes=2 * fetch_size,
        client_id=args.value("clientId"),
        runtime=brokers.runtime(args),
    ) as consumer:
        start = LATEST_TIME if args.has("from-latest") else EARLIEST_TIME
        offset = consumer.earliest_or_latest(tp, start)
        reader = PartitionReader(consumer.call, tp, Position(offset, fetch_size))
        perf = FetchPerf(options, fetch_size)
        begin, end = run_threads(
            [lambda: perf.run(reader)], lambda: perf.messages, options.messages, str(tp)
        )
    if perf.error is not None:
        raise perf.error
    print_total([perf], options, fetch_size, (begin, end), end - begin)
    return 0


def _server(text: str) -> tuple[str, int]:
    """``kafka://host:port``; ends in the usage for anything else."""
    url = urlsplit(text)
    try:
        host, port = url.hostname, url.port
    except ValueError:
        host = port = None
    if not host or not port:
        PARSER.usage_and_exit(f"{text} is not of the form kafka://hostname:port")
    return host, port
