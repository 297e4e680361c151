"""Java's clients of the years between 0.8 and today, each on topics that all the others share."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from integration import builds, original
from integration.clients import Console, Record
from integration.harness import Broker, Tools
from integration.later.member import MemberProcess, await_members
from integration.later.programs import FIRST_TIME, Message
from integration.modern import ModernBroker
from integration.programs import java_clients as clients
from integration.programs.java_clients import VERSIONS

COUNT = 10
WAIT_S = 90.0
SHARED_CODECS = ("none", "gzip", "snappy", "lz4")
QUICK = ("0.9.0.1", "0.11.0.3")
ALL = [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in VERSIONS]
Server = Broker | ModernBroker


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def version(request: pytest.FixtureRequest) -> str:
    found = str(request.param)
    try:
        clients.command(found)
    except builds.MissingError as error:
        pytest.skip(str(error))
    return found


def since(*needed: int) -> list[object]:
    return [each for each in ALL if clients.number(str(each.values[0])) >= needed]


@pytest.mark.parametrize("version", ALL, indirect=True)
def test_it_writes_and_reads(version: str, server: Server) -> None:
    """Each codec it knows; idempotent where it can be."""
    topic, codecs = unique("written"), clients.codecs(version)
    server.create_topic(topic)
    expected = clients.sent(version, "it", codecs, COUNT, 0)
    args = (topic, "it", ",".join(codecs), COUNT, str(clients.has_headers(version)).lower())
    offsets = clients.run(version, "Client", "write", server.address, *args)
    assert offsets == [str(each.offset) for each in expected]
    found = clients.run(version, "Client", "read", server.address, topic, len(expected))
    assert found == [clients.shown(version, each) for each in expected]


@pytest.fixture(scope="module")
def shared(server: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Message]]:
    """A topic that a producer of 0.8.2.2 and one of each later version wrote in turn."""
    if original.missing():
        pytest.skip(original.missing())
    topic = unique("shared")
    server.create_topic(topic)
    messages: list[Message] = []
    old = Console(Tools("original", tmp_path_factory.mktemp("original")))
    for version in VERSIONS:
        pairs = [(f"key {n}", f"0.8.2.2 {n}") for n in range(2)]
        if version in ("0.9.0.1", "0.11.0.3"):  # at the beginning, and between its successors
            written = [Record(key.encode(), value.encode()) for key, value in pairs]
            old.write(server, topic, written, "gzip")
            messages += [Message(len(messages) + n, -1, *pairs[n], "") for n in range(2)]
        args = (topic, version, ",".join(SHARED_CODECS), 2, "false")
        try:
            clients.run(version, "Client", "write", server.address, *args)
        except builds.MissingError as error:
            pytest.skip(str(error))
        messages += clients.sent(version, version, SHARED_CODECS, 2, len(messages))
    return topic, messages


@pytest.mark.parametrize("version", ALL, indirect=True)
def test_it_reads_what_all_wrote(
    version: str, server: Server, shared: tuple[str, list[Message]]
) -> None:
    topic, messages = shared
    found = clients.run(version, "Client", "read", server.address, topic, len(messages))
    assert found == [clients.shown(version, each) for each in messages]


@pytest.fixture
def members() -> Iterator[list[MemberProcess]]:
    """Do not outlive the test."""
    started: list[MemberProcess] = []
    yield started
    for member in started:
        member.kill()


@pytest.mark.parametrize("version", ALL, indirect=True)
def test_a_group_goes_on_where_it_stopped(
    version: str, server: Server, members: list[MemberProcess]
) -> None:
    topic, group = unique("grouped"), unique("group")
    server.create_topic(topic, 2)
    producer = Producer({"bootstrap.servers": server.address})

    def join() -> MemberProcess:
        command = clients.command(version, "Client", "member", server.address, group, topic)
        members.append(MemberProcess(version, command))
        return members[-1]

    def write(first: int) -> list[tuple[int, int]]:
        for n in range(COUNT):
            for partition in range(2):
                producer.produce(topic, f"{n}", partition=partition)
        assert producer.flush(WAIT_S) == 0
        return [(partition, first + n) for partition in range(2) for n in range(COUNT)]

    both = join(), join()
    await_members(
        "one partition each",
        WAIT_S,
        lambda: sorted(list(each.assigned) for each in both) == [[0], [1]],
        *both,
    )
    expected = write(0)
    await_members(
        "all messages",
        WAIT_S,
        lambda: sorted(both[0].messages + both[1].messages) == expected,
        *both,
    )
    for each in both:
        each.close()
    expected = write(COUNT)
    later = join()
    await_members("the rest", WAIT_S, lambda: sorted(later.messages) == expected, later)
    later.close()
    assert sorted(later.messages) == expected


@pytest.mark.parametrize("version", since(0, 10, 1), indirect=True)
def test_it_finds_offsets_by_time(version: str, server: Server) -> None:
    topic = unique("times")
    server.create_topic(topic)
    args = (topic, "it", "none,gzip", COUNT, "false")
    clients.run(version, "Client", "write", server.address, *args)
    asked = (FIRST_TIME - 1, FIRST_TIME + 5, FIRST_TIME + COUNT - 1, FIRST_TIME + COUNT)
    found = clients.run(version, "Times", server.address, topic, *asked)
    places = [f"{n} {FIRST_TIME + n}" for n in (0, 5, COUNT - 1)]
    assert found == ["0", str(2 * COUNT), *places, "none"]


@pytest.mark.parametrize("version", since(0, 11), indirect=True)
def test_it_administers_topics(version: str, server: Server) -> None:
    found = clients.run(version, "Administration", server.address, unique("admin"))
    described = ["partitions 2", "retention 123456", "retention 234567", "nodes 1"]
    assert found == ["listed true", *described, "listed false"]
