"""Idempotent producers at a broker: what Kafka 3.9.1 answers, acks, leader changes, long sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.message.sets import iter_messages
from kafka08.network.server import ConnectionClosed
from kafka08.protocol.registry import APIS
from kafka08.protocol.requests import decode_response
from kafka08.protocol.schemas import ProducePartition, ProduceRequest, ProduceTopic, RequestHeader
from kafka08.protocol.types import Struct
from kafka08.server.apis.produce import ProduceApi
from kafka08.server.rebuild.view import ConsumerView
from kafka08.server.requests.long_work import LOOP_STORED_BYTES
from tests.log.test_producers import known, produced
from tests.server.support import ME, PEER, Rig, message_set

GOLDEN = Path(__file__).parents[1] / "golden" / "modern-vectors.json"
T = TopicPartition("t", 0)


def produce(rig: Rig, data: bytes, acks: int = 1, version: int = 3) -> Any:
    """(error, base offset)."""
    api = ProduceApi(rig.runtime, rig.replicas, ConsumerView(rig.runtime))
    topics = [ProduceTopic("t", [ProducePartition(0, memoryview(bytearray(data)))])]
    answer = api.handle(RequestHeader(0, version, 1, "c"), ProduceRequest(acks, 1000, topics))
    if answer is None:
        return None
    found = answer.topics[0].partitions[0]
    return found.error, found.base_offset


def log_of(rig: Rig, key: TopicPartition = T) -> Any:
    return rig.replicas.partitions[key].any_log()


@pytest.mark.scenario("modern-46")
def test_the_answers_are_those_of_kafka_3_9(tmp_path: Path) -> None:
    """The frames were recorded, but for three sets of three between 3 and 15."""
    rig = Rig(tmp_path, later=True)
    rig.lead("t-id")
    vectors = json.loads(GOLDEN.read_text(encoding="utf-8"))["vectors"]
    names = [vector["name"] for vector in vectors]
    first, last = names.index("raw: seq 0"), names.index("raw: unknown pid starts at seq 7")
    replayed = []
    for request, response in zip(
        vectors[first : last + 1 : 2], vectors[first + 1 : last + 2 : 2], strict=True
    ):
        if request["key"] != 0:
            continue
        if request["name"] == "raw: seq 15":
            for sequence in (6, 9, 12):
                data = produced(33, sequence, 3)
                log_of(rig, TopicPartition("t-id", 0)).append(memoryview(bytearray(data)))
        reply = rig.send(bytes.fromhex(request["hex"]))
        assert reply is not None
        layout = Struct(APIS[0].response, 3)
        found = decode_response(layout, reply[4:])[1].topics[0].partitions[0]
        answer = response["decoded"]["body"]["Responses"][0]["PartitionResponses"][0]
        assert (found.error, found.base_offset) == (answer["ErrorCode"], answer["BaseOffset"]), (
            request["name"]
        )
        replayed.append(found.error)
    assert replayed == [0, 0, 0, 0, 45, 0, 45, 45, 0, 45, 0, 0]
    rig.close()


@pytest.mark.scenario("modern-43")
@pytest.mark.parametrize("acks", [1, -1])
def test_a_repeated_set_is_answered_with_its_offset(rig: Rig, acks: int) -> None:
    rig.lead()
    rig.append("x")
    for _ in range(3):
        assert produce(rig, produced(7, 0, 2), acks) == (0, 1)
    assert produce(rig, produced(7, 3, 2), acks) == (45, -1)
    assert produce(rig, produced(7, 0, epoch=1), acks) == (0, 3)
    assert produce(rig, produced(7, 2), acks) == (47, -1)
    assert log_of(rig).log_end_offset == 4


def test_a_repeated_set_waits_for_the_same_acks(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])
    assert produce(rig, produced(7, 0), -1) == (7, 0)  # stored; nobody has copied it in time
    assert produce(rig, produced(7, 0), 1) == (0, 0)
    assert produce(rig, produced(7, 0), -1) == (7, 0)
    rig.runtime.while_waiting = [lambda: rig.fetch(("t", 0, 1, 0), replica_id=PEER)]
    assert produce(rig, produced(7, 0), -1) == (0, 0)
    assert log_of(rig).log_end_offset == 1


def test_a_repeated_set_fails_when_the_leader_changes(rig: Rig) -> None:
    rig.lead(replicas=[ME, PEER])
    assert produce(rig, produced(7, 0)) == (0, 0)
    rig.runtime.while_waiting = [rig.follow]
    assert produce(rig, produced(7, 0), -1)[0] == 6
    assert produce(rig, produced(7, 0))[0] == 6


def test_without_acks_a_gap_closes_the_connection(rig: Rig) -> None:
    rig.lead()
    for _ in range(2):
        assert produce(rig, produced(7, 0), 0) is None
    with pytest.raises(ConnectionClosed):
        produce(rig, produced(7, 5), 0)
    assert log_of(rig).log_end_offset == 1


@pytest.mark.parametrize(("version", "code"), [(3, 87), (2, 2)])
@pytest.mark.parametrize("bad", [produced(7, -1), produced(7, 0, epoch=-1)])
def test_a_batch_without_sequence_or_epoch(rig: Rig, version: int, code: int, bad: bytes) -> None:
    rig.lead()
    assert produce(rig, bad, version=version) == (code, -1)
    assert log_of(rig).log_end_offset == 0


def test_several_batches_of_a_producer_are_one_too_many(rig: Rig) -> None:
    rig.lead()
    two = produced(7, 0) + produced(7, 1)
    assert produce(rig, two, version=3) == (87, -1)
    assert produce(rig, two, version=2) == (2, -1)
    assert known(log_of(rig)) == {}


def test_a_damaged_batch_is_not_taken_for_one_of_the_producer(rig: Rig) -> None:
    rig.lead()
    assert produce(rig, produced(7, 0)) == (0, 0)
    for good in (produced(7, 0), produced(7, 1)):
        damaged = bytearray(good)
        damaged[-1] ^= 1
        assert produce(rig, bytes(damaged)) == (2, -1)
    assert known(log_of(rig)) == {7: [0]}


def test_a_long_set_that_comes_again(rig: Rig) -> None:
    """It is numbered by another thread, while others append."""
    rig.topic_settings["t"] = {"max.message.bytes": "4000000"}
    rig.lead()
    long = produced(7, 0, 80_000)
    assert len(long) > LOOP_STORED_BYTES
    assert produce(rig, long) == (0, 0)
    rig.append("x")
    assert produce(rig, long) == (0, 0)
    assert produce(rig, produced(7, 80_000)) == (0, 80_001)


@pytest.mark.scenario("modern-44")
def test_a_new_leader_knows_what_it_copied(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "leader")
    rig.lead(replicas=[ME, PEER])
    for sequence in range(6):
        assert produce(rig, produced(7, sequence)) == (0, sequence)
    copy = Rig(tmp_path / "copy")
    copy.follow()
    data = log_of(rig).read(0, 1 << 20).read()
    log_of(copy).append(memoryview(bytearray(data)), assign_offsets=False)
    copy.lead()
    assert produce(copy, produced(7, 5)) == (0, 5)
    assert produce(copy, produced(7, 1)) == (0, 1)
    assert produce(copy, produced(7, 0)) == (45, -1)
    assert produce(copy, produced(7, 7)) == (45, -1)
    assert produce(copy, produced(7, 6)) == (0, 6)
    rig.close()
    copy.close()


@pytest.mark.scenario("modern-45")
@pytest.mark.parametrize("clean", [True, False])
def test_the_last_set_comes_again_after_a_restart(tmp_path: Path, clean: bool) -> None:
    rig = Rig(tmp_path)
    rig.lead()
    for sequence in range(3):
        produce(rig, produced(7, sequence))
    rig.close()
    if not clean:
        (rig.directory / ".kafka_cleanshutdown").unlink()
        for path in rig.directory.glob("*/*.snapshot"):
            path.unlink()
    again = Rig(tmp_path)
    again.lead()
    assert produce(again, produced(7, 2)) == (0, 2)
    assert produce(again, produced(7, 3)) == (0, 3)
    again.close()


@pytest.mark.scenario("modern-47")
def test_silent_producers_are_forgotten_after_a_day(rig: Rig) -> None:
    rig.lead()
    for producer in range(50):
        produce(rig, produced(producer, 0, time=1))  # times are the producers'
    rig.clock.now += 24 * 3600 - 1
    produce(rig, produced(9, 1))
    rig.logs.expire_producers()
    assert len(known(log_of(rig))) == 50
    rig.clock.now += 2
    rig.logs.expire_producers()
    assert known(log_of(rig)) == {9: [9, 50]}


def test_clients_of_0_8_read_what_was_stored_once(rig: Rig) -> None:
    rig.lead()
    rig.append("a")
    for _ in range(2):
        produce(rig, produced(7, 0, 2))
    produce(rig, message_set("b"), version=0)
    _, _, data = rig.fetch(("t", 0, 0, 1000))[("t", 0)]
    assert [(m.offset, m.value) for m in iter_messages(bytes(data))] == [
        (0, b"a"), (1, b"0"), (2, b"1"), (3, b"b"),
    ]  # fmt: skip
