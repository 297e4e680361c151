"""Topics that producers of 0.8, of format 1 and of format 2 write in turn, as every client reads
them: each message once, at its offset."""

from __future__ import annotations

import uuid
from itertools import groupby
from typing import NamedTuple

import pytest

from integration.clients import Console, HighLevel, Record, Shell
from integration.harness import Broker, Tools
from integration.later import programs
from integration.later.programs import CODECS, FIRST_TIME, READERS, Message, records, sent
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.standalone import StandaloneConsumer
from kafka08.message.scan import iter_entries

COUNT = 4  # messages of a turn
WAIT_S = 60
LATER_WRITERS = ("confluent-kafka", "franz-go", f"java-{programs.JAVA[0]}")
# Each writes several times, after and before each other kind.
TURNS = ("console", 2, 1, "scala", 1, 2, "console", 1, 2, 2, "scala")


class Written(NamedTuple):
    topic: str
    messages: list[Message]


class Writers:
    """Clients that write a turn each into a topic, in one codec."""

    def __init__(self, broker: Broker, tools: Tools, codec: str) -> None:
        self.broker = broker
        self.tools = tools
        self.codec = codec
        self.topic = f"in-turn-{codec}-{uuid.uuid4().hex[:8]}"
        self.messages: list[Message] = []
        self._later = 0
        broker.create_topic(self.topic)

    def take_turns(self) -> Written:
        for turn in TURNS:
            before = len(self.messages)
            if turn == 2:
                self.messages += self.batches(before)
            elif turn == 1:
                self.messages += self.format_1(before)
            else:
                self.messages += self.format_0(before, is_new=turn == "console")
            assert len(self.messages) == before + COUNT
        return Written(self.topic, self.messages)

    def format_0(self, offset: int, is_new: bool) -> list[Message]:
        """By the Scala producer of 0.8.2.2, or by its Java one. It has no zstd."""
        codec = "gzip" if self.codec == "zstd" else self.codec
        found = [Record(b"old %d" % n, b"0 %d" % (offset + n)) for n in range(COUNT)]
        console = Console(self.tools, is_new)
        lines = "".join(f"{(r.key or b'').decode()}\t{(r.value or b'').decode()}\n" for r in found)
        args = ["--broker-list", self.broker.address, "--topic", self.topic]
        args += ["--compression-codec", codec, "--property", "parse.key=true"]
        args += ["--request-required-acks", "1", *(["--new-producer"] if console.new else [])]
        done = self.tools.run("kafka.tools.ConsoleProducer", *args, stdin=lines)
        assert done.code == 0 and "ERROR" not in done.err, done.err
        return _messages(offset, found, None)

    def format_1(self, offset: int) -> list[Message]:
        """By kafka-python as it speaks to a broker of 0.10. It has no zstd then."""
        from kafka import KafkaProducer

        codec = {"none": None, "zstd": "lz4"}.get(self.codec, self.codec)
        producer = KafkaProducer(
            bootstrap_servers=self.broker.address,
            api_version=(0, 10),
            compression_type=codec,
            linger_ms=50,
        )
        found = [Record(b"timed %d" % n, b"1 %d" % (offset + n)) for n in range(COUNT)]
        futures = [
            producer.send(self.topic, each.value, each.key, None, 0, FIRST_TIME + number)
            for number, each in enumerate(found)
        ]
        assert [each.get(WAIT_S).offset for each in futures] == list(range(offset, offset + COUNT))
        producer.close()
        return _messages(offset, found, FIRST_TIME)

    def batches(self, offset: int) -> list[Message]:
        """By a client of today, each time by the next one."""
        client = LATER_WRITERS[self._later % len(LATER_WRITERS)]
        self._later += 1
        address = self.broker.address
        found = programs.run(client, "write", address, self.topic, self.codec, COUNT, "false")
        assert list(map(int, found)) == list(range(offset, offset + COUNT))
        return [
            each._replace(offset=offset + n) for n, each in enumerate(sent([self.codec], COUNT))
        ]


def _messages(offset: int, found: list[Record], time: int | None) -> list[Message]:
    return [
        Message(
            offset + n,
            -1 if time is None else time + n,
            (each.key or b"").decode(),
            (each.value or b"").decode(),
            "",
        )
        for n, each in enumerate(found)
    ]


@pytest.fixture(scope="module")
def original_tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return Tools("original", tmp_path_factory.mktemp("tools-in-turn"))


@pytest.fixture(scope="module")
def written(modern_broker: Broker, original_tools: Tools) -> dict[str, Written]:
    """A topic for each codec, by the codec."""
    for writer in LATER_WRITERS:
        if reason := programs.missing(writer):
            pytest.skip(reason)
    return {codec: Writers(modern_broker, original_tools, codec).take_turns() for codec in CODECS}


@pytest.mark.original
def test_the_log_has_all_formats_in_turn(
    modern_broker: Broker, written: dict[str, Written]
) -> None:
    expected = [turn if isinstance(turn, int) else 0 for turn in TURNS]
    for topic, _ in written.values():
        data = (modern_broker.log_dir / f"{topic}-0" / f"{0:020d}.log").read_bytes()
        found = [each.magic for each in iter_entries(data)]
        assert [magic for magic, _ in groupby(found)] == [magic for magic, _ in groupby(expected)]


@pytest.mark.original
@pytest.mark.parametrize("client", READERS)
def test_a_client_of_today_reads_it(
    client: str, modern_broker: Broker, written: dict[str, Written]
) -> None:
    if reason := programs.missing(client):
        pytest.skip(reason)
    args: list[object] = []
    expected: list[str] = []
    for codec in CODECS if "zstd" in READERS[client].codecs else ("none", "gzip", "snappy"):
        topic, messages = written[codec]
        args += [topic, len(messages)]
        expected += [each.line(topic) for each in messages]
    assert programs.run(client, "read", modern_broker.address, *args) == expected


@pytest.mark.original
@pytest.mark.parametrize("codec", CODECS)
def test_clients_of_0_8_read_it(
    codec: str, modern_broker: Broker, written: dict[str, Written], original_tools: Tools
) -> None:
    topic, messages = written[codec]
    HighLevel(original_tools).check(modern_broker, topic, records(messages))
    Shell(original_tools).check(modern_broker, topic, records(messages))


@pytest.mark.original
@pytest.mark.parametrize("codec", CODECS)
def test_our_consumers_read_it(
    codec: str, modern_broker: Broker, written: dict[str, Written]
) -> None:
    topic, messages = written[codec]
    config = ConsumerConfig(
        group_id="unused",
        zookeeper_connect="unused",
        auto_offset_reset="smallest",
        consumer_timeout_ms=60000,
        api_versions_request=True,
    )
    with StandaloneConsumer([("127.0.0.1", modern_broker.port)], config) as consumer:
        stream = consumer.stream(topic, 0)
        found = [next(stream) for _ in messages]
    assert [(m.offset, m.timestamp, m.value) for m in found] == [
        (each.offset, each.time, each.value.encode()) for each in messages
    ]
