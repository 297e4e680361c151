"""kafka-consumer-perf-test: how fast a group member reads (kafka.tools.ConsumerPerformance).

Unlike there rates end with the last thread that read something, not five seconds before the end
whatever happened, and the rate between two reports is not cut to a multiple of 1,000.
"""

from __future__ import annotations

import random
import time
import traceback

from kafka08 import properties
from kafka08.consumer.config import LARGEST, SMALLEST, ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.consumer.stream import KafkaStream
from tools.groups.nodes import delete_group
from tools.options import Arguments, OptionParser
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
from tools.shutdown import at_end, hold

IDLE_MS = 5000
SETTLE_S = 1.0


class StreamReader(Reader):
    """Reads a stream until it has enough or nothing comes any more."""

    def __init__(
        self, number: int, stream: KafkaStream, options: PerfOptions, fetch_size: int
    ) -> None:
        super().__init__(options, fetch_size, str(number))
        self.ended_at = 0.0
        self._stream = stream

    def run(self) -> None:
        begin = time.time()
        try:
            self._read(begin)
            self.ended_at = time.time()
        except ConsumerTimeoutError:
            self.ended_at = time.time() - IDLE_MS / 1000
        except Exception:
            hold()
            traceback.print_exc()
        if self._options.detailed:
            self._report(0, 0, begin)

    def _read(self, since: float) -> None:
        options = self._options
        byte_count = last_messages = last_bytes = 0
        if not options.messages:
            return
        for messages, message in enumerate(self._stream, 1):
            byte_count += len(message.value or b"")
            if messages % options.reporting_interval == 0 or messages >= options.messages:
                self.messages, self.bytes = messages, byte_count
                if options.detailed and messages % options.reporting_interval == 0:
                    self._report(last_messages, last_bytes, since)
                since, last_messages, last_bytes = time.time(), messages, byte_count
                if messages >= options.messages:
                    break
            self.messages, self.bytes = messages, byte_count


PARSER = OptionParser(
    None,
    PERF_OPTIONS,
    f"""
--zookeeper <urls>  REQUIRED: Where ZooKeeper is: host:port, several separated by commas, a chroot
    at the end.
--topic <topic>  REQUIRED: The topic to read.
--group <gid>  The group to read as; what ZooKeeper keeps of it is deleted.
    (default: perf-consumer-{random.randrange(100000)})
--fetch-size <Integer: size>  Bytes to ask for at once. (default: 1048576)
--from-latest  Start at the end, not at the first message there is.
--socket-buffer-size <Integer: size>  The size of the TCP receive buffer. (default: 2097152)
--threads <Integer: count>  How many threads read. (default: 10)
--num-fetch-threads <Integer: count>  How many threads fetch. (default: 1)
""",
    later="""
--consumer.config <config file>  A file of consumer properties. Options count more.
""",
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv, "topic", "zookeeper")
    options = perf_options(PARSER, args)
    config = ConsumerConfig.from_properties(_settings(args))
    if not options.hide_header:
        print(DETAILED_HEADER if options.detailed else CONSUMED_HEADER, flush=True)
    delete_group(config.zookeeper_connect, config.group_id, config)
    topic = args.value("topic")
    connector = ConsumerConnector(config)
    with at_end(connector.close):
        streams = connector.create_message_streams({topic: args.value("threads")})[topic]
        fetch_size = config.fetch_message_max_bytes
        readers = [StreamReader(n, s, options, fetch_size) for n, s in enumerate(streams)]
        time.sleep(SETTLE_S)
        begin, end = run_threads(
            [reader.run for reader in readers],
            lambda: sum(reader.messages for reader in readers),
            options.messages,
            topic,
        )
    if not options.detailed:
        print(_summary(readers, options, fetch_size, begin, end), flush=True)
    return 0


def _summary(
    readers: list[StreamReader], options: PerfOptions, fetch_size: int, begin: float, end: float
) -> str:
    seconds = max([begin, *(reader.ended_at for reader in readers if reader.messages)]) - begin
    size = sum(reader.bytes for reader in readers)
    messages = sum(reader.messages for reader in readers)
    times = [options.show_time(begin), options.show_time(end)]
    return ", ".join(times + consumed(fetch_size, size, messages, seconds))


def _settings(args: Arguments) -> dict[str, str]:
    path = args.value("consumer.config")
    return {
        **({} if path is None else properties.load(path)),
        "group.id": args.value("group"),
        "socket.receive.buffer.bytes": str(args.value("socket-buffer-size")),
        "fetch.message.max.bytes": str(args.value("fetch-size")),
        "auto.offset.reset": LARGEST if args.has("from-latest") else SMALLEST,
        "zookeeper.connect": args.value("zookeeper"),
        "consumer.timeout.ms": str(IDLE_MS),
        "num.consumer.fetchers": str(args.value("num-fetch-threads")),
    }
