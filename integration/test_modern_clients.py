"""Today's clients, unmodified, on topics that clients of 0.8.2.2 use as well, both ways."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from integration.clients import Console, HighLevel, Shell, text_records
from integration.harness import Broker, Tools
from integration.later import programs
from integration.later.programs import CLIENTS, FIRST_TIME, Message, records, sent

COUNT = 20
QUICK = ("confluent-kafka", "kafka-python")
GIVE_THE_END = ("kafkajs",)  # for times after all messages
CODECS_OF_08 = ("none", "gzip", "snappy", "lz4")

Written = Callable[[str], tuple[str, list[Message]]]


@pytest.fixture(scope="module")
def written(modern_broker: Broker) -> Written:
    """The topic that a client has written in each of its codecs, and its messages."""
    topics: dict[str, tuple[str, list[Message]]] = {}

    def write(client: str) -> tuple[str, list[Message]]:
        if client not in topics:
            topic, codecs = f"written-{client}-{uuid.uuid4().hex[:8]}", CLIENTS[client].codecs
            modern_broker.create_topic(topic, 2)
            found = programs.run(
                client, "write", modern_broker.address, topic, ",".join(codecs), COUNT, "false"
            )
            messages = sent(codecs, COUNT)
            assert [int(line) for line in found] == [each.offset for each in messages]
            topics[client] = topic, messages
        return topics[client]

    return write


@pytest.fixture(scope="module")
def console_topics(modern_broker: Broker) -> dict[tuple[str, str], str]:
    """Topics that console producers have written, by kind and codec."""
    return {}


@pytest.mark.scenario("modern-7", "modern-21")
@pytest.mark.parametrize("client", CLIENTS)
def test_clients_of_0_8_read_what_it_wrote(
    client: str, modern_broker: Broker, written: Written, tools: Tools
) -> None:
    skip_if_missing(client)
    topic, messages = written(client)
    HighLevel(tools).check(modern_broker, topic, records(messages))
    Shell(tools).check(modern_broker, topic, records(messages))


@pytest.mark.scenario("modern-8")
@pytest.mark.parametrize("client", CLIENTS)
def test_it_reads_what_they_wrote(
    client: str, modern_broker: Broker, written: Written, request: pytest.FixtureRequest
) -> None:
    skip_if_missing(client)
    writers = QUICK if request.config.getoption("--quick") else CLIENTS
    args: list[object] = []
    expected: list[str] = []
    for writer in writers:
        codecs = CLIENTS[writer].codecs
        if programs.missing(writer) or not set(codecs) <= set(CLIENTS[client].codecs):
            continue
        topic, messages = written(writer)
        args += [topic, len(messages)]
        expected += [each.line(topic) for each in messages]
    assert programs.run(client, "read", modern_broker.address, *args) == expected


@pytest.mark.scenario("modern-6")
@pytest.mark.parametrize("client", CLIENTS)
def test_it_reads_what_the_console_producer_wrote(
    client: str,
    modern_broker: Broker,
    tools: Tools,
    console_topics: dict[tuple[str, str], str],
) -> None:
    skip_if_missing(client)
    args: list[object] = []
    expected: list[str] = []
    for codec in CODECS_OF_08:
        if codec not in CLIENTS[client].codecs:
            continue
        if (tools.kind, codec) not in console_topics:
            topic = f"console-{tools.kind}-{codec}-{uuid.uuid4().hex[:8]}"
            modern_broker.create_topic(topic)
            Console(tools).write(modern_broker, topic, text_records(), codec)
            console_topics[tools.kind, codec] = topic
        topic = console_topics[tools.kind, codec]
        args += [topic, len(text_records())]
        for offset, (key, value) in enumerate(text_records()):
            assert key is not None and value is not None
            expected.append(Message(offset, -1, key.decode(), value.decode(), "").line(topic))
    assert programs.run(client, "read", modern_broker.address, *args) == expected


@pytest.mark.scenario("modern-43")
@pytest.mark.parametrize("client", CLIENTS)
def test_it_is_idempotent_where_it_can_be(client: str, modern_broker: Broker) -> None:
    """With ids of producers; all default settings of some clients ask for them."""
    skip_if_missing(client)
    topic, codecs = f"idempotent-{client}", CLIENTS[client].codecs[::2]
    modern_broker.create_topic(topic)
    found = programs.run(
        client, "write", modern_broker.address, topic, ",".join(codecs), COUNT, "true"
    )
    messages = sent(codecs, COUNT)
    assert [int(line) for line in found] == [each.offset for each in messages]
    lines = programs.run(client, "read", modern_broker.address, topic, len(messages))
    assert lines == [each.line(topic) for each in messages]


@pytest.mark.scenario("modern-25", "modern-27")
@pytest.mark.parametrize("client", CLIENTS)
def test_it_finds_offsets_by_time(client: str, modern_broker: Broker, written: Written) -> None:
    """Each codec has the same times once more: the first message at or after a time counts."""
    skip_if_missing(client)
    topic, messages = written(client)
    asked = (FIRST_TIME, FIRST_TIME + 5, FIRST_TIME + COUNT - 1, FIRST_TIME + COUNT)
    found = programs.run(client, "times", modern_broker.address, topic, *asked)
    nothing = len(messages) if client in GIVE_THE_END else -1
    assert list(map(int, found)) == [0, len(messages), 0, 5, COUNT - 1, nothing]


@pytest.mark.scenario("modern-1", "modern-2", "modern-3", "modern-49")
@pytest.mark.parametrize("client", CLIENTS)
def test_it_administers_topics(client: str, modern_broker: Broker) -> None:
    skip_if_missing(client)
    found = programs.run(client, "admin", modern_broker.address, f"admin-{client}")
    changed = ["retention 123456", "partitions 3"]
    assert [line.lower() for line in found] == ["listed true", *changed, "listed false"]


def skip_if_missing(client: str) -> None:
    reason = programs.missing(client)
    if reason:
        pytest.skip(reason)
