"""How fast one partition can be fetched (kafka.tools.SimpleConsumerPerformance).

Unlike there, a fetch goes on where the last one ended; the original adds bytes to the offset.
"""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urlsplit

from kafka08.client.security import runtime_of
from kafka08.common import EARLIEST_TIME, LATEST_TIME, TopicPartition
from kafka08.consumer.simple import SimpleConsumer
from kafka08.errors import raise_for_code
from kafka08.message.sets import iter_messages
from tools import admin_command
from tools.options import OptionParser
from tools.perf.perf_options import (
    CONSUMED_HEADER,
    DETAILED_HEADER,
    PERF_OPTIONS,
    PerfOptions,
    Reader,
    consumed,
    perf_options,
    run_threads,
)

TIMEOUT_MS = 30000


class PartitionReader(Reader):
    """Reads one partition to its end, or until it has enough."""

    def __init__(
        self, consumer: SimpleConsumer, tp: TopicPartition, options: PerfOptions, fetch_size: int
    ) -> None:
        super().__init__(options, fetch_size)
        self.error: Exception | None = None
        self._consumer = consumer
        self._tp = tp

    def run(self, offset: int) -> None:
        try:
            self._read(offset)
        except Exception as error:
            self.error = error

    def _read(self, offset: int) -> None:
        since, last_messages, last_bytes = time.time(), 0, 0
        while self.messages <= self._options.messages:
            following = self._fetch(offset)
            if following == offset:
                return
            offset = following
            if self.messages - last_messages > self._options.reporting_interval:
                if self._options.detailed:
                    self._report(last_messages, last_bytes, since)
                since, last_messages, last_bytes = time.time(), self.messages, self.bytes

    def _fetch(self, offset: int) -> int:
        """The next offset; the same one at the end."""
        found = self._consumer.fetch({self._tp: offset}, self._fetch_size)[self._tp]
        raise_for_code(found.error)
        message_set: Any = found.message_set
        for message in iter_messages(message_set):
            if message.offset >= offset:
                self.messages += 1
                self.bytes += len(message.value or b"")
                offset = message.offset + 1
        return offset


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
    if not options.hide_header:
        print(DETAILED_HEADER if options.detailed else CONSUMED_HEADER, flush=True)
    tp = TopicPartition(args.value("topic"), args.value("partition"))
    fetch_size = args.value("fetch-size")
    with SimpleConsumer(
        host,
        port,
        timeout_ms=TIMEOUT_MS,
        receive_buffer_bytes=2 * fetch_size,
        client_id=args.value("clientId"),
        runtime=runtime_of(admin_command.command_config(args)),
    ) as consumer:
        start = LATEST_TIME if args.has("from-latest") else EARLIEST_TIME
        offset = consumer.earliest_or_latest(tp, start)
        reader = PartitionReader(consumer, tp, options, fetch_size)
        begin, end = run_threads(
            [lambda: reader.run(offset)], lambda: reader.messages, options.messages, str(tp)
        )
        if reader.error is not None:
            raise reader.error
        if not options.detailed:
            print(_summary(reader, options, fetch_size, begin, end), flush=True)
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


def _summary(
    reader: PartitionReader, options: PerfOptions, fetch_size: int, begin: float, end: float
) -> str:
    times = [options.show_time(begin), options.show_time(end)]
    return ", ".join(times + consumed(fetch_size, reader.bytes, reader.messages, end - begin))
