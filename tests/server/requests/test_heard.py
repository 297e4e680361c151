"""Which requests are noted, and that they are served as they were."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kafka08.network.peer import Peer, current_peer
from kafka08.protocol.group_schemas import JoinGroupRequest
from kafka08.protocol.schemas import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    OffsetCommitRequest,
    OffsetCommitRequestV0,
    ProducePartition,
    ProduceRequest,
    ProduceTopic,
    RequestHeader,
)
from kafka08.server.requests.heard import KINDS, NO_FORMAT, Seen, Speaker, Spoken


def echo(key: int) -> Any:
    """A handler that answers a request with itself."""
    return SimpleNamespace(
        key=key,
        last_version=8,
        handle=lambda _, request: request,
        failure=lambda _, request, code: code,
    )


class Ear:
    """Sends requests of the peer ``b:1``, and has what was noted."""

    def __init__(self) -> None:
        self.noted: list[Spoken] = []
        self.seen: Seen = {}

    def send(self, key: int, request: Any, version: int = 0, client_id: str | None = "c") -> None:
        handler = KINDS[key](echo(key), self.seen, self.noted.append)
        header = RequestHeader(key, version, 5, client_id)
        assert handler.handle(header, request) is request
        assert handler.failure(header, request, 3) == 3
        assert (handler.key, handler.last_version) == (key, 8)

    def heard(self) -> list[tuple[int, int, str, int]]:
        """Key, version, name and format of each; forgets them."""
        found = [each[1:] for each in self.noted]
        self.noted.clear()
        return found


def produce(*topics: str, sets: tuple[bytes, ...] = (b"",)) -> ProduceRequest:
    partitions = [ProducePartition(number, each) for number, each in enumerate(sets)]
    return ProduceRequest(1, 1000, [ProduceTopic(each, partitions) for each in topics])


def fetch(topic: str, replica_id: int = -1) -> FetchRequest:
    return FetchRequest(replica_id, 0, 1, [FetchTopic(topic, [FetchPartition(0, 0, 1)])])


def message(magic: int) -> bytes:
    return bytes(16) + bytes([magic]) + bytes(9)


@pytest.fixture
def ear() -> Iterator[Ear]:
    peer = Peer("10.0.0.3:4711", "User:ann")
    token = current_peer.set(peer)
    yield Ear()
    current_peer.reset(token)


def test_a_client_is_known_by_what_its_connection_says(ear: Ear) -> None:
    ear.send(0, produce("t"))
    assert ear.noted[0].speaker == Speaker("c", "10.0.0.3", "User:ann", None)
    peer = current_peer.get()
    assert peer is not None
    peer.introduce("librdkafka", "2.5")
    ear.send(0, produce("u"), client_id=None)
    assert ear.noted[1].speaker == Speaker(None, "10.0.0.3", "User:ann", ("librdkafka", "2.5"))


def test_once_for_each_topic_and_version_of_a_connection(ear: Ear) -> None:
    ear.send(0, produce("t"))
    ear.send(0, produce("t"), client_id="other")
    assert ear.heard() == [(0, 0, "t", NO_FORMAT)]
    ear.send(0, produce("t", "u"))
    assert ear.heard() == [(0, 0, "u", NO_FORMAT)]
    ear.send(0, produce("u"), version=2)
    assert ear.heard() == [(0, 2, "u", NO_FORMAT)]
    current_peer.set(Peer("10.0.0.3:4712"))
    ear.send(0, produce("t"))
    assert ear.heard() == [(0, 0, "t", NO_FORMAT)]
    ear.seen.clear()
    ear.send(0, produce("t"))
    assert len(ear.noted) == 1


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_the_format_is_that_of_the_first_message(ear: Ear, magic: int) -> None:
    ear.send(0, produce("t", sets=(b"", bytes(16), message(magic), message(9))))
    assert ear.heard() == [(0, 0, "t", magic)]


def test_fetches_of_consumers_alone(ear: Ear) -> None:
    for replica_id in (2, -2):
        ear.send(1, fetch("t", replica_id))
    assert ear.heard() == []
    current_peer.set(Peer("10.0.0.4:1"))
    ear.send(1, fetch("t"), version=4)
    assert ear.heard() == [(1, 4, "t", NO_FORMAT)]


def test_groups(ear: Ear) -> None:
    for _ in range(2):
        ear.send(8, OffsetCommitRequestV0("g", []))
        ear.send(11, JoinGroupRequest("joined", 1, "", "consumer", []))
    assert ear.heard() == [(8, 0, "g", NO_FORMAT), (11, 0, "joined", NO_FORMAT)]
    ear.send(8, OffsetCommitRequest("g", []), version=1)
    assert ear.heard() == [(8, 1, "g", NO_FORMAT)]


def test_a_long_name_is_cut_and_takes_no_memory(ear: Ear) -> None:
    for _ in range(2):
        ear.send(0, produce("t" * 1000), client_id="c" * 1000)
    assert [(len(each.name), len(each.speaker.client_id or "")) for each in ear.noted] == [
        (255, 255)
    ] * 2
    assert ear.seen == {"10.0.0.3:4711": {}}


def test_a_request_without_topics_or_without_a_peer_is_served(ear: Ear) -> None:
    ear.send(0, produce())
    token = current_peer.set(None)
    ear.send(0, produce("t"))
    ear.send(8, OffsetCommitRequestV0("g", []))
    current_peer.reset(token)
    assert (ear.noted, ear.seen) == ([], {})
