"""TestLogCleaning: does a compacted topic keep the last message of every key?

Mirrors kafka.tools.TestLogCleaning, a soak test against a running broker: writes messages whose
keys repeat, notes what was sent in one file, reads the topics back into another, sorts both by
key, and compares the last message of each. Topics must get ``cleanup.policy=compact`` from the
broker (``log.cleanup.policy``). Exit status 1 when anything differs; the files then stay.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import groupby, zip_longest
from typing import IO, NamedTuple

from kafka08.admin import InvalidArgumentError
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.connector import ConsumerConnector
from kafka08.consumer.errors import ConsumerTimeoutError
from kafka08.message.sets import iter_messages
from kafka08.producer.kafka_producer import KafkaProducer
from tools.options import OptionParser
from tools.shutdown import at_end

_IDLE_MS = 20_000
_SORT = ("sort", "--key=1,2", "--stable", "--buffer-size=20%")


class TestRecord(NamedTuple):
    """A line of either file; ``value`` is the number of the message, -1 for one read deleted."""

    topic: str
    key: int
    value: int
    is_delete: bool

    def __str__(self) -> str:
        return f"{self.topic}\t{self.key}\t{self.value}\t{'d' if self.is_delete else 'u'}"


PARSER = OptionParser(
    "An integration test for log cleaning.",
    """
--messages <Long: count>  How many messages to send, per topic. (default: 9223372036854775807)
--duplicates <Integer: count>  How often each key occurs, on average. (default: 5)
--broker <url>  The broker to send to.
--topics <Integer: count>  How many topics to use. (default: 1)
--percent-deletes <Integer: percent>  How many of a hundred messages delete their key. (default: 0)
--zk <url>  ZooKeeper connect string.
--sleep <Integer: ms>  Seconds between sending and reading. (default: 0)
--dump <directory>  Print the messages of an earlier run that the directory of a partition holds,
    and do nothing else.
""",
)


def main(argv: list[str]) -> int:
    args = PARSER.parse_command(argv)
    if args.has("dump"):
        dump_log(args.value("dump"))
        return 0
    PARSER.check_required(args, "broker", "zk", "messages")
    messages, sleep_s = args.value("messages"), args.value("sleep")
    run = random.randrange(2**31 - 1)
    topics = [f"log-cleaner-test-{run}-{number}" for number in range(args.value("topics"))]
    print(f"Producing {messages} messages...")
    produced = produce_messages(
        args.value("broker"),
        topics,
        messages,
        args.value("duplicates"),
        args.value("percent-deletes"),
    )
    print(f"Sleeping for {sleep_s} seconds...")
    time.sleep(sleep_s)
    print("Consuming messages...")
    consumed = consume_messages(args.value("zk"), topics)
    before, after = _count_lines(produced), _count_lines(consumed)
    reduction = 100 * (1 - after / before) if before else 0.0
    print(
        f"{before} rows of data produced, {after} rows of data consumed "
        f"({reduction:.1f}% reduction)."
    )
    print("De-duplicating and validating output files...")
    validate_output(produced, consumed)
    os.unlink(produced)
    os.unlink(consumed)
    return 0


def dump_log(directory: str) -> None:
    """Print what a partition's directory holds. Raises KafkaError, OSError."""
    if not os.path.exists(directory):
        raise InvalidArgumentError(
            f"requirement failed: Non-existent directory: {os.path.abspath(directory)}"
        )
    for name in sorted(os.listdir(directory)):
        if name.endswith(".log"):
            with open(os.path.join(directory, name), "rb") as file:
                for message in iter_messages(file.read()):
                    key, content = (_shown(part) for part in (message.key, message.value))
                    print(f"offset = {message.offset}, key = {key}, content = {content}")


def _shown(part: bytes | None) -> str:
    return "null" if part is None else part.decode(errors="replace")


def produce_messages(
    broker: str, topics: Sequence[str], messages: int, duplicates: int, percent_deletes: int
) -> str:
    """Send to the topics in turn; the path of the file that lists what was sent."""
    keys = messages // duplicates if duplicates else 0
    if keys <= 0:
        raise InvalidArgumentError("bound must be positive")
    noise = JavaRandom(1)
    with _result_file("produced") as file, KafkaProducer({"bootstrap.servers": broker}) as producer:
        print(f"Logging produce requests to {file.name}")
        for number in range(messages * len(topics)):
            topic = topics[number % len(topics)]
            key = noise.next_int(keys)
            is_delete = number % 100 < percent_deletes
            value = None if is_delete else b"%d" % number
            producer.send(topic, value, key=b"%d" % key)
            file.write(f"{TestRecord(topic, key, number, is_delete)}\n")
        return file.name


def consume_messages(zookeeper: str, topics: Sequence[str]) -> str:
    """Read each topic until nothing has come for a while; the path of the file of what came."""
    config = ConsumerConfig.from_properties(
        {
            "group.id": f"log-cleaner-test-{random.randrange(2**31 - 1)}",
            "zookeeper.connect": zookeeper,
            "consumer.timeout.ms": str(_IDLE_MS),
            "auto.offset.reset": "smallest",
        }
    )
    connector = ConsumerConnector(config)
    with at_end(connector.close), _result_file("consumed") as file:
        streams = connector.create_message_streams(dict.fromkeys(topics, 1))
        print(f"Logging consumed messages to {file.name}")
        for topic in topics:
            try:
                for message in streams[topic][0]:
                    is_delete = message.value is None
                    value = -1 if is_delete else int(message.value)
                    file.write(f"{TestRecord(topic, int(message.key), value, is_delete)}\n")
            except ConsumerTimeoutError:
                continue
        return file.name


def _result_file(what: str) -> IO[str]:
    return tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix=f"kafka-log-cleaner-{what}-", suffix=".txt", delete=False
    )


def validate_output(produced: str, consumed: str) -> None:
    """Compare the last message of each key in both files. Raises InvalidArgumentError."""
    total = mismatched = 0
    paths = (f"{produced}.deduped", f"{consumed}.deduped")
    with ExitStack() as stack:
        files = [stack.enter_context(open(path, "w", encoding="utf-8")) for path in paths]
        sources = [stack.enter_context(_sorted(path)) for path in (produced, consumed)]
        for sent, got in zip_longest(*(_last_of_each(source) for source in sources)):
            if got is None:
                raise InvalidArgumentError(
                    "requirement failed: Additional values produced not found in consumer log."
                )
            if sent is None:
                raise InvalidArgumentError(
                    "requirement failed: Additional values consumed not found in producer log."
                )
            for file, record in zip(files, (sent, got), strict=True):
                file.write(f"{record}\n")
            total += 1
            mismatched += sent != got
    print(f"Validated {total} values, {mismatched} mismatches.")
    if mismatched:
        raise InvalidArgumentError("requirement failed: Non-zero number of row mismatches.")
    for path in paths:
        os.unlink(path)


@contextmanager
def _sorted(path: str) -> Iterator[IO[str]]:
    """The lines of a file of any size by topic and key, those of a key in their order."""
    command = [*_SORT, f"--temporary-directory={tempfile.gettempdir()}", path]
    environment = {**os.environ, "LC_ALL": "C"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, encoding="utf-8", env=environment
    ) as process:
        assert process.stdout is not None
        yield process.stdout
        process.stdout.close()


def _last_of_each(lines: IO[str]) -> Iterator[TestRecord]:
    """The last record of each key, unless it deletes."""
    for _, group in groupby(map(_parse, lines), key=lambda record: record[:2]):
        *_, last = group
        if not last.is_delete:
            yield last


def _parse(line: str) -> TestRecord:
    topic, key, value, kind = line.rstrip("\n").split("\t")
    return TestRecord(topic, int(key), int(value), kind == "d")


def _count_lines(path: str) -> int:
    with open(path, "rb") as file:
        return sum(1 for _ in file)


class JavaRandom:
    """java.util.Random's numbers, by its documented formula: both tools send the same keys."""

    def __init__(self, seed: int) -> None:
        self._seed = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)

    def next_int(self, bound: int) -> int:
        """A number below ``bound``, which is at most 2**31 - 1."""
        if bound & (bound - 1) == 0:
            return (bound * self._next()) >> 31
        while True:
            bits = self._next()
            number = bits % bound
            if bits - number + bound - 1 < 1 << 31:
                return number

    def _next(self) -> int:
        self._seed = (self._seed * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        return self._seed >> 17
