"""Requests of members on a broker: waiting, storing, timers, takeover by another broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.common import OFFSETS_TOPIC, TopicPartition, offsets_partition_for
from kafka08.groups.records import (
    Committed,
    GroupPartition,
    decode_group,
    decode_key,
    encode_group,
    encode_group_key,
    encode_key,
    encode_value,
)
from kafka08.message.sets import encode_set, iter_messages
from kafka08.network.peer import Peer, current_peer
from kafka08.server.groups.coordinator import MemberId
from kafka08.server.groups.group import JoinAnswer, JoinRequest
from kafka08.server.groups.requests import GroupRequests
from tests.server.groups.support import strategies
from tests.server.support import ME, PEER, Rig

NUMBER = offsets_partition_for("g", 4)
OFFSETS = (OFFSETS_TOPIC, NUMBER)
KEY = GroupPartition("g", "t", 0)


@pytest.fixture
def led(rig: Rig) -> Rig:
    rig.offsets.stores_groups = True
    rig.lead(*OFFSETS)
    rig.runtime.run_spawned()
    return rig


def reload(rig: Rig) -> None:
    """Another broker leads for a while."""
    rig.follow(*OFFSETS)
    rig.lead(*OFFSETS)
    rig.runtime.run_spawned()


def wait_for_timers(rig: Rig) -> None:
    at = rig.groups.timers.next
    assert at is not None
    rig.clock.now = max(rig.clock.now, at)
    rig.groups.run_timers()


def meanwhile(rig: Rig, *acts: Callable[[], Any]) -> None:
    """These calls happen, one after the other, while a request waits."""
    rig.runtime.while_waiting = [*acts, nobody_answers]


def nobody_answers() -> None:
    raise AssertionError("nobody answers")


def join(rig: Rig, member_id: str = "", *, instance: str | None = None) -> JoinAnswer:
    request = JoinRequest(
        "g", member_id, instance, "c", "/h", 10_000, 60_000, "consumer", strategies("range")
    )
    return rig.members.join(request)


def stable(rig: Rig, **named: Any) -> JoinAnswer:
    """A group of one member."""
    meanwhile(rig, lambda: wait_for_timers(rig))
    answer = join(rig, **named)
    rig.runtime.while_waiting = []
    member = MemberId(answer.member_id, named.get("instance"))
    assert rig.members.sync("g", 1, member, {answer.member_id: b"A"}) == (0, b"A")
    return answer


def records(rig: Rig) -> list[tuple[Any, bytes | None]]:
    log = rig.replicas.partitions[TopicPartition(*OFFSETS)].any_log()
    data = log.read(0, 1 << 20).read()
    return [(decode_key(message.key or b""), message.value) for message in iter_messages(data)]


def beat(rig: Rig, answer: JoinAnswer) -> int:
    return rig.members.heartbeat("g", answer.generation, MemberId(answer.member_id))


# Storing and loading


def test_a_group_is_stored_before_its_members_have_it(led: Rig) -> None:
    answer = stable(led)
    ((key, value),) = records(led)
    record = decode_group(value or b"")
    assert key == "g" and (record.generation, record.leader) == (1, answer.member_id)
    assert [bytes(each.assignment) for each in record.members] == [b"A"]


@pytest.mark.scenario("modern-37")
def test_the_next_coordinator_goes_on_with_the_group(led: Rig) -> None:
    answer = stable(led)
    led.follow(*OFFSETS)
    assert beat(led, answer) == 16
    led.lead(*OFFSETS)
    assert beat(led, answer) == 0  # loading
    assert led.members.sync("g", 1, MemberId(answer.member_id), {}) == (27, b"")
    assert join(led, answer.member_id).error == 14
    led.runtime.run_spawned()
    assert beat(led, answer) == 0
    assert led.members.sync("g", 1, MemberId(answer.member_id), {}) == (0, b"A")
    led.clock.now += 11
    led.groups.run_timers()
    assert beat(led, answer) == 25


def test_a_replaced_coordinator_that_does_not_know_it_takes_nothing(led: Rig) -> None:
    """Its followers copy from another leader, so that nothing reaches the high watermark."""
    led.offsets.commit("g", {KEY: Committed(5, "", led.clock.millis())})
    led.lead(*OFFSETS, replicas=[ME, PEER], isr=[ME, PEER])
    led.runtime.run_spawned()
    led.replicas.follow_later(frozenset({ME, PEER}))
    meanwhile(led, lambda: wait_for_timers(led))
    answer = join(led)
    led.runtime.while_waiting = []
    member = MemberId(answer.member_id)
    assert led.members.sync("g", 1, member, {answer.member_id: b"A"}) == (27, b"")
    assert led.offsets.commit("g", {KEY: Committed(6, "", led.clock.millis())}) == 7
    known = led.offsets.fetch(KEY)
    assert known is not None and known.offset == 5
    led.follow(*OFFSETS)
    assert beat(led, answer) == 16


@pytest.mark.scenario("modern-41")
def test_groups_are_not_stored_while_an_original_broker_might_read_them(led: Rig) -> None:
    led.originals.add(PEER)
    answer = stable(led)
    led.members.leave("g", [MemberId(answer.member_id)])
    assert records(led) == []
    reload(led)
    assert beat(led, answer) == 25


def test_a_group_is_stored_only_without_original_brokers(rig: Rig) -> None:
    class Cluster:
        has_originals = True

        def are_registered(self) -> bool:
            return self.has_originals

    cluster: Any = Cluster()
    rig.members = GroupRequests(rig.runtime, rig.groups, rig.offsets, cluster)
    rig.lead(*OFFSETS)
    rig.runtime.run_spawned()
    answer = stable(rig)
    assert records(rig) == []
    cluster.has_originals = False
    rig.members.run_timers()
    rig.members.leave("g", [MemberId(answer.member_id)])
    assert [key for key, _ in records(rig)] == ["g"]


def test_a_group_is_not_stored_where_an_original_has_a_replica(led: Rig) -> None:
    led.lead(*OFFSETS, replicas=[ME, PEER])
    led.runtime.run_spawned()
    led.replicas.follow_later(frozenset({ME}))
    answer = stable(led)
    led.members.leave("g", [MemberId(answer.member_id)])
    assert records(led) == []
    log = led.replicas.partition(TopicPartition(*OFFSETS)).leader_log()
    assert log.later_formats.until(log.segments) == 0


def test_what_originals_cannot_read_of_the_offsets_topic_is_known(led: Rig) -> None:
    led.offsets.commit("g", {KEY: Committed(5, "", led.clock.millis())})
    log = led.replicas.partition(TopicPartition(*OFFSETS)).leader_log()
    assert log.later_formats.until(log.segments) == 0
    stable(led)
    end = log.log_end_offset
    assert log.later_formats.until(log.segments) == end > 1
    led.offsets.commit("g", {KEY: Committed(6, "", led.clock.millis())})
    assert log.later_formats.until(log.segments) == end
    log.later_formats.end = 0
    reload(led)
    assert log.later_formats.until(log.segments) == end, "as the log says"


def test_empty_groups_and_deleted_ones_are_stored(led: Rig) -> None:
    answer = stable(led)
    led.offsets.commit("g", {KEY: Committed(5, "", led.clock.millis())})
    assert led.members.delete("g") == 68
    assert led.members.leave("g", [MemberId(answer.member_id)]) == [0]
    assert decode_group(records(led)[-1][1] or b"").members == []
    assert led.members.delete("g") == 0
    assert records(led)[-2:] == [("g", None), (KEY, None)]
    assert led.offsets.fetch(KEY) is None and led.members.delete("g") == 69
    reload(led)
    assert led.groups.groups == {} and led.offsets.groups_with_offsets() == set()


def test_a_group_without_a_coordinated_member_can_be_deleted(led: Rig) -> None:
    led.offsets.commit("g", {KEY: Committed(5, "", led.clock.millis())})
    assert led.members.delete("g") == 0 and records(led)[-1] == (KEY, None)
    led.follow(*OFFSETS)
    assert led.members.delete("g") == 16


def test_a_group_too_large_for_a_record_works_unstored(led: Rig) -> None:
    led.topic_settings[OFFSETS_TOPIC] = {"max.message.bytes": "100"}
    log = led.replicas.partitions[TopicPartition(*OFFSETS)].any_log()
    log.config = log.config.override({"max.message.bytes": "100"})
    answer = stable(led)
    assert records(led) == [] and beat(led, answer) == 0


@pytest.mark.parametrize(("code", "told"), [(6, 16), (7, 27), (19, 15), (-1, -1), (56, -1)])
def test_a_store_that_fails_is_told_in_words_of_groups(
    led: Rig, monkeypatch: pytest.MonkeyPatch, code: int, told: int
) -> None:
    meanwhile(led, lambda: wait_for_timers(led))
    answer = join(led)
    monkeypatch.setattr(led.offsets, "_store", lambda group, records: (code, -1))
    assert led.members.sync("g", 1, MemberId(answer.member_id), {}) == (told, b"")
    assert beat(led, answer) == 27


@pytest.mark.scenario("modern-56")
def test_records_of_other_versions_and_other_layouts_are_skipped(
    led: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    stable(led)
    record = decode_group(records(led)[-1][1] or b"")
    pairs: list[tuple[bytes, bytes | None]] = [
        (encode_group_key("newer"), b"\0\4" + encode_group(record)[2:]),
        (b"\0\3\0\1g", b"transactions"),
        (encode_group_key("gone"), encode_group(record)),
        (encode_group_key("gone"), None),
        (b"\0\1" + encode_key(KEY)[2:], b"\0\3" + bytes(8) + bytes(4) + bytes(2) + bytes(8)),
        (encode_key(KEY._replace(partition=1)), encode_value(Committed(7, "", 7))),
    ]
    key = TopicPartition(*OFFSETS)
    led.replicas.append_messages(key, memoryview(bytearray(encode_set(pairs, 0))), 1)
    caplog.set_level("WARNING")
    reload(led)
    assert list(led.groups.groups) == ["g"]
    assert led.offsets.fetch(KEY) == (0, "", 0)
    assert led.offsets.fetch(KEY._replace(partition=1)) == (7, "", 7)
    assert len([each for each in caplog.messages if "Skipping record" in each]) == 2


# Waiting


def test_a_request_waits_no_longer_than_its_sender(led: Rig) -> None:
    peer = Peer()
    token = current_peer.set(peer)
    try:
        meanwhile(led, peer.end)
        assert join(led).error == 27
        assert led.groups.groups["g"].members == {} and peer.wake is None
        peer.has_ended = False
        meanwhile(led, *[lambda: wait_for_timers(led)] * 2)
        assert join(led).error == 0 and peer.wake is None
    finally:
        current_peer.reset(token)


def test_a_sync_ends_with_its_connection(led: Rig) -> None:
    first = stable(led, instance="i1")
    meanwhile(led, lambda: join_again(led, first))
    second = join(led)
    assert (second.generation, second.leader) == (2, first.member_id)
    peer = Peer()
    token = current_peer.set(peer)
    try:
        meanwhile(led, peer.end)
        assert led.members.sync("g", 2, MemberId(second.member_id), {}).error == 27
    finally:
        current_peer.reset(token)


def join_again(rig: Rig, answer: JoinAnswer) -> None:
    assert join(rig, answer.member_id, instance="i1").error == 0


def test_stopping_answers_who_waits(led: Rig) -> None:
    led.members.start()
    meanwhile(led, led.members.stop)
    assert join(led).error == 16


def test_the_timers_task_sleeps_until_the_next_deadline(led: Rig) -> None:
    answer = stable(led)
    before = led.clock.now
    led.members.run_timers()
    assert led.clock.now - before <= 60
    while led.clock.now < before + 10:
        led.members.run_timers()
    assert beat(led, answer) == 25 and decode_group(records(led)[-1][1] or b"").members == []
    before = led.clock.now
    while led.groups.timers.next is not None:
        led.members.run_timers()
    led.members.run_timers()
    assert led.clock.now >= before + 60


def test_an_earlier_deadline_wakes_the_timers(led: Rig) -> None:
    led.members.run_timers()
    led.clock.now -= 60  # it is asleep until what is now
    answer = stable(led)
    assert led.members._wake.is_set() and beat(led, answer) == 0


# Expiry


def test_offsets_of_a_group_with_members_do_not_expire(led: Rig) -> None:
    answer = stable(led)
    led.offsets.commit("g", {KEY: Committed(5, "", led.clock.millis())})
    day = 24 * 3600
    led.clock.now += day + 1
    led.offsets.expire()
    assert led.offsets.fetch(KEY) is not None
    led.members.leave("g", [MemberId(answer.member_id)])
    led.clock.now += day - 1
    led.offsets.expire()
    assert led.offsets.fetch(KEY) is not None
    led.clock.now += 2
    led.offsets.expire()
    assert led.offsets.fetch(KEY) is None and led.groups.groups == {}
    assert records(led)[-1] == ("g", None)
