"""Clients from between 0.8 and today, unmodified: each asks for versions and uses them its way."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.clients import HighLevel
from integration.harness import Broker, Tools
from integration.later import programs as later
from integration.years import programs
from integration.years.programs import CLIENTS, FIRST_TIME, Message, records, sent

COUNT = 10
QUICK = ("optiopay-2.1.1", "kafka-python-1.4.7")
# One of each client, and the quirks of a version, for what takes a JVM.
READ_BY_THE_ORIGINAL = (*QUICK, "sarama-1.15.0@0.10", "sarama-1.45.0@0.11", "kafka-node-5.0.0")
# It shows the offsets inside compressed messages of format 1 as they are stored, from 0 on, and
# opens the sets in any order. It does so on later releases of Kafka too.
SHOW_INNER_OFFSETS = ("kafka-node-2.6.1",)
BATCHES = [name for name in CLIENTS if name.startswith("sarama") and name.endswith("@0.11")]

Written = Callable[[str], tuple[str, list[Message]]]


def with_action(action: str) -> pytest.MarkDecorator:
    """The clients that have it, most of them in the slow round alone."""
    names = [name for name, client in CLIENTS.items() if action in client.actions]
    marks = {name: () if name in QUICK else (pytest.mark.slow,) for name in names}
    return pytest.mark.parametrize(
        "client", [pytest.param(name, marks=marks[name]) for name in names]
    )


@pytest.fixture(scope="module")
def written(modern_broker: Broker) -> Written:
    """The topic that a client has written in each of its codecs, and its messages."""
    topics: dict[str, tuple[str, list[Message]]] = {}

    def write(client: str) -> tuple[str, list[Message]]:
        if client not in topics:
            topic, codecs = new_topic(modern_broker), CLIENTS[client].codecs
            programs.run(client, "write", modern_broker.address, topic, ",".join(codecs), COUNT)
            topics[client] = topic, sent(codecs, COUNT)
        return topics[client]

    return write


@with_action("write")
def test_it_reads_what_it_wrote(client: str, modern_broker: Broker, written: Written) -> None:
    skip_if_missing(client)
    topic, messages = written(client)
    address = modern_broker.address
    found = programs.run(client, "read", address, topic, len(messages))
    assert as_shown(client, found) == as_shown(client, [each.line() for each in messages])
    if "ends" in CLIENTS[client].actions:
        assert programs.run(client, "ends", address, topic) == [f"0 {len(messages)}"]


@with_action("write")
def test_a_client_of_today_reads_what_it_wrote(
    client: str, modern_broker: Broker, written: Written
) -> None:
    skip_if_missing(client)
    if reason := later.missing("confluent-kafka"):
        pytest.skip(reason)
    topic, messages = written(client)
    lines = later.run("confluent-kafka", "read", modern_broker.address, topic, len(messages))
    rows = [line.split("\t") for line in lines]
    assert ["\t".join((row[1], *row[3:5])) for row in rows] == [each.line() for each in messages]


@with_action("write")
def test_a_consumer_of_0_8_reads_what_it_wrote(
    client: str, modern_broker: Broker, written: Written, our_tools: Tools
) -> None:
    skip_if_missing(client)
    topic, messages = written(client)
    HighLevel(our_tools).check(modern_broker, topic, records(messages))


@pytest.mark.slow
@pytest.mark.original
@pytest.mark.parametrize("client", READ_BY_THE_ORIGINAL)
def test_the_original_consumer_reads_what_it_wrote(
    client: str, modern_broker: Broker, written: Written, tmp_path: Path
) -> None:
    skip_if_missing(client)
    topic, messages = written(client)
    HighLevel(Tools("original", tmp_path)).check(modern_broker, topic, records(messages))


@with_action("offsets")
def test_it_commits_outside_of_a_membership(client: str, modern_broker: Broker) -> None:
    skip_if_missing(client)
    topic, address = new_topic(modern_broker), modern_broker.address
    programs.run(client, "write", address, topic, "none", COUNT)
    found = programs.run(client, "offsets", address, topic, f"offsets-{topic}", COUNT // 2)
    assert found == [str(COUNT // 2)]


@with_action("member")
def test_it_is_the_member_of_a_group(client: str, modern_broker: Broker, written: Written) -> None:
    skip_if_missing(client)
    topic, messages = written(client)
    address = modern_broker.address
    found = programs.run(client, "member", address, topic, f"member-{topic}", len(messages))
    assert as_shown(client, found) == as_shown(client, [each.line() for each in messages])


@with_action("admin")
def test_it_makes_topics(client: str, modern_broker: Broker) -> None:
    skip_if_missing(client)
    programs.run(client, "admin", modern_broker.address, f"admin-{uuid.uuid4().hex[:8]}")


@pytest.mark.slow
@pytest.mark.parametrize("client", BATCHES)
def test_its_batches_are_found_by_time(
    client: str, modern_broker: Broker, written: Written
) -> None:
    """sarama before 1.45.1 sends batches whose maximum timestamp is -1."""
    skip_if_missing(client)
    if reason := later.missing("confluent-kafka"):
        pytest.skip(reason)
    topic, messages = written(client)
    asked = (FIRST_TIME, FIRST_TIME + 5, FIRST_TIME + COUNT - 1, FIRST_TIME + COUNT)
    found = later.run("confluent-kafka", "times", modern_broker.address, topic, *asked)
    assert list(map(int, found)) == [0, len(messages), 0, 5, COUNT - 1, -1]


def new_topic(broker: Broker) -> str:
    topic = f"years-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic)
    return topic


def as_shown(client: str, lines: list[str]) -> list[str]:
    """The messages as a client that reads them can be compared: some show no true offsets."""
    if client not in SHOW_INNER_OFFSETS:
        return lines
    return sorted(line.partition("\t")[2] for line in lines)


def skip_if_missing(client: str) -> None:
    if reason := programs.missing(client):
        pytest.skip(reason)
