"""The versions a client chooses from a broker's answer to ApiVersions."""

from __future__ import annotations

import pytest

from kafka08.errors import ProtocolError
from kafka08.protocol.later_schemas import (
    ApiVersionsResponse,
    InitProducerIdRequest,
    ServedVersions,
)
from kafka08.protocol.negotiation import (
    NoApiVersionsError,
    NotServedError,
    answered,
    chosen,
    closed,
    question,
)
from kafka08.protocol.registry import APIS, api_of
from kafka08.protocol.requests import RequestDecoder, encode_response
from kafka08.protocol.schemas import FetchRequest, ListOffsetsRequest, ProduceRequest
from kafka08.protocol.transaction_schemas import AddPartitionsToTxnRequest, TxnOffsetCommitRequest


def answer(*served: tuple[int, int, int], error: int = 0, number: int = 0) -> bytes:
    response = ApiVersionsResponse(error, [ServedVersions(*each) for each in served])
    return b"".join(encode_response(number, response))[4:]


def test_the_question_is_of_version_0() -> None:
    header, _ = RequestDecoder(APIS).decode(memoryview(question("me"))[4:])
    assert header == (18, 0, 0, "me")


def test_the_highest_versions_of_both_sides() -> None:
    chosen = answered(answer((0, 0, 5), (1, 4, 99), (2, 1, 3), (3, 0, 1)), "b:1")
    assert {kind: found.version for kind, found in chosen.items()} == {
        ProduceRequest: 5,
        FetchRequest: APIS[1].last,
        ListOffsetsRequest: 3,
    }
    assert chosen[ProduceRequest].response.version == 5


@pytest.mark.parametrize(
    ("served", "text"),
    [
        (((0, 0, 2), (1, 0, 11)), "b:1 serves Produce 0 to 2; 3 to 8 are needed"),
        (((0, 0, 3), (1, 0, 3)), "b:1 serves Fetch 0 to 3; 4 to 11 are needed"),
        (((0, 0, 3), (1, 12, 17)), "b:1 serves Fetch 12 to 17"),
        (((0, 0, 3),), "b:1 serves Fetch not"),
        (((0, 0, 3), (1, 0, 4), (2, 0, 0)), "b:1 serves Offsets 0 to 0; 1 to 5 are needed"),
    ],
)
def test_a_broker_without_the_versions_that_are_needed(served: tuple, text: str) -> None:
    with pytest.raises(NoApiVersionsError, match=text):
        answered(answer(*served), "b:1")


def test_answers_that_are_none() -> None:
    with pytest.raises(NoApiVersionsError, match="code 35"):
        answered(answer(error=35), "b:1")
    with pytest.raises(ProtocolError, match="answered 7"):
        answered(answer(number=7), "b:1")
    with pytest.raises(ProtocolError):
        answered(b"\0\0", "b:1")


def test_a_closed_connection_names_the_setting() -> None:
    assert "set api.versions.request=false" in str(closed("b:1"))


NEEDED = ((0, 0, 8), (1, 0, 11), (2, 0, 5))


def test_versions_of_transactions_are_those_for_clients() -> None:
    """Later ones of AddPartitionsToTxn are for brokers."""
    versions = answered(answer(*NEEDED, (24, 0, 5), (28, 0, 4)), "b:1")
    assert chosen(AddPartitionsToTxnRequest("id"), versions).version == 3
    commit = TxnOffsetCommitRequest("id", "g", 7, 0, [])
    assert chosen(commit, versions).version == 3
    assert chosen(commit, versions, 2).version == 2


@pytest.mark.parametrize("served", [(), ((28, 0, 2),), ((28, 4, 5),)])
def test_a_broker_without_those_of_transactions_is_asked_for_others(served: tuple) -> None:
    versions = answered(answer(*NEEDED, *served), "b:1")
    with pytest.raises(NotServedError, match="TxnOffsetCommit of a version from 3 to 3"):
        chosen(TxnOffsetCommitRequest("id", "g", 7, 0, []), versions)
    assert chosen(ProduceRequest(1, 1, []), versions).version == 8


def test_a_broker_that_was_not_asked_gets_the_usual_version() -> None:
    request = InitProducerIdRequest("id", 1000)
    assert chosen(request, {}).version == api_of(request)[1]
