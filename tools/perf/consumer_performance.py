"""kafka-consumer-perf-test: how fast a group member reads (kafka.tools.ConsumerPerformance).

Unlike there rates end with the last thread that read something, not five seconds before the end
whatever happened, and the rate between two reports is not cut to a multiple of 1,000.
"""

from __future__ import annotations

import random
import time
import traceback
from functools import partial

from kafka08.consumer.config import LARGEST, SMALLEST, ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.consumer.stream import KafkaStream
from tools.groups.nodes import delete_group
from tools.options import Arguments, OptionParser
from tools.perf.perf_options import (
    PERF_OPTIONS,
    Consumption,
    perf_options,
    print_header,
    print_total,
    run_threads,
)
from tools.shutdown import at_end, hold

IDLE_MS = 5000
SETTLE_S = 1.0


class ConsumerPerfThread(Consumption):
    """Reads a stream until it has enough or nothing comes any more."""

    ended_at = 0.0

    def run(self, stream: KafkaStream) -> None:
        begin = time.time()
        try:
            self._read(stream, begin)
            self.ended_at = time.time()
        except ConsumerTimeoutError:
            self.ended_at = time.time() - IDLE_MS / 1000
        except Exception:
            hold()
            traceback.print_exc()
        if self._options.detailed:
            self.report(0, 0, begin)

    def _read(self, stream: KafkaStream, since: float) -> None:
        options = self._options
        byte_count = last_messages = last_bytes = 0
        if not options.messages:
            return
        for messages, message in enumerate(stream, 1):
            byte_count += len(message.value or b"")
            self.messages, self.bytes = messages, byte_count
            if messages % options.reporting_interval == 0:
                if options.detailed:
                    self.report(last_messages, last_bytes, since)
                since, last_messages, last_bytes = time.time(), messages, byte_count
            if messages >= options.messages:
                break


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
    print_header(options)
    delete_group(config.zookeeper_connect, config.group_id, config)
    topic, fetch_size = args.value("topic"), config.fetch_message_max_bytes
    connector = ConsumerConnector(config)
    with at_end(connector.close):
        streams = connector.create_message_streams({topic: args.value("threads")})[topic]
        threads = [
            ConsumerPerfThread(options, fetch_size, str(number)) for number in range(len(streams))
        ]
        time.sleep(SETTLE_S)
        begin, end = run_threads(
            [partial(each.run, stream) for each, stream in zip(threads, streams, strict=True)],
            lambda: sum(each.messages for each in threads),
            options.messages,
            topic,
        )
    last = max([begin, *(each.ended_at for each in threads if each.messages)])
    print_total(threads, options, fetch_size, (begin, end), last - begin)
    return 0


def _settings(args: Arguments) -> dict[str, str]:
    return {
        **args.properties("consumer.config"),
        "group.id": args.value("group"),
        "socket.receive.buffer.bytes": str(args.value("socket-buffer-size")),
        "fetch.message.max.bytes": str(args.value("fetch-size")),
        "auto.offset.reset": LARGEST if args.has("from-latest") else SMALLEST,
        "zookeeper.connect": args.value("zookeeper"),
        "consumer.timeout.ms": str(IDLE_MS),
        "num.consumer.fetchers": str(args.value("num-fetch-threads")),
    }
