"""Sets that take long: checked away from the loop, and still appended in order and as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka08.common import TopicPartition
from kafka08.message.compression import compress
from kafka08.message.entry import encode_entry
from kafka08.message.leaves import timed_leaves
from kafka08.message.scan import iter_entries
from kafka08.message.sets import encode_set, iter_messages
from kafka08.protocol.schemas import ProducePartition, ProduceRequest, ProduceTopic
from kafka08.server.requests.long_work import LOOP_BYTES, SMALL_BYTES
from kafka08.server.storage import appends
from tests.message.batches import batch
from tests.message.sets import CODECS, plain
from tests.server.support import ME, PEER, Rig, message_set

T = ("t", 0)
LOTS = 64 << 20
MESSAGE = b"x" * 1000


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(message_max_bytes=LOTS, replica_fetch_max_bytes=LOTS)


PLAIN_BYTES = 64 << 10  # of plain sets, checked on the loop in these tests


def inflating(size: int, codec: int = 1, first: int = 0) -> bytes:
    """A small wrapper that inflates to about ``size`` bytes."""
    count = size // len(encode_entry(None, MESSAGE)) + 1
    inner = plain([(None, MESSAGE)] * count, first)
    return encode_entry(None, compress(codec, inner), 0, codec)


def values(rig: Rig) -> list[tuple[int, int]]:
    """(offset, length of the value) of all that a consumer gets."""
    found: list[tuple[int, int]] = []
    while True:
        offset = found[-1][0] + 1 if found else 0
        error, _, data = rig.fetch((*T, offset, LOTS))[T]
        assert error == 0
        more = [(m.offset, len(m.value or b"")) for m in iter_messages(bytes(data))]
        if not more:
            return found
        found += [each for each in more if each[0] >= offset]


class Meanwhile:
    """Counts what other threads are given, and does something on the loop before they are done."""

    def __init__(self, rig: Rig, *acts: Callable[[], Any]) -> None:
        self.acts = list(acts)
        self.calls = 0
        self._blocking = rig.runtime.blocking
        rig.runtime.blocking = self._call  # type: ignore[method-assign]

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        self.calls += 1
        result = self._blocking(function, *args)
        if self.acts:
            self.acts.pop(0)()
        return result


def test_short_sets_stay_on_the_loop(rig: Rig) -> None:
    rig.lead()
    elsewhere = Meanwhile(rig)
    assert rig.produce((*T, message_set("a", "b"))) == {T: (0, 0)}
    assert rig.produce((*T, inflating(LOOP_BYTES // 2))) == {T: (0, 2)}
    assert elsewhere.calls == 0


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [2 * LOOP_BYTES, 2 * SMALL_BYTES])
def test_long_sets_are_checked_elsewhere(rig: Rig, codec: int, size: int) -> None:
    rig.lead()
    elsewhere = Meanwhile(rig)
    data = inflating(size, codec)
    assert rig.produce((*T, data)) == {T: (0, 0)}
    assert elsewhere.calls == (1 if size < SMALL_BYTES else 2)
    found = values(rig)
    assert [offset for offset, _ in found] == list(range(len(found)))
    assert len(found) == size // len(encode_entry(None, MESSAGE)) + 1


def test_long_plain_sets_too(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appends, "LOOP_STORED_BYTES", PLAIN_BYTES)
    rig.lead()
    elsewhere = Meanwhile(rig)
    count = PLAIN_BYTES // len(MESSAGE) + 1
    assert rig.produce((*T, encode_set([(None, MESSAGE)] * count))) == {T: (0, 0)}
    assert elsewhere.calls == 1
    assert values(rig) == [(number, len(MESSAGE)) for number in range(count)]


@pytest.mark.parametrize("kind", ["verbatim", "normalised"])
def test_what_is_appended_meanwhile_comes_first(rig: Rig, kind: str) -> None:
    rig.topic_settings["t"] = {"compressed.sets": kind}
    rig.lead()
    Meanwhile(rig, lambda: rig.append("first", "second"))
    assert rig.produce((*T, inflating(2 * LOOP_BYTES) + message_set("end"))) == {T: (0, 2)}
    found = values(rig)
    assert [offset for offset, _ in found] == list(range(len(found)))
    assert [length for _, length in found] == [5, 6, *[len(MESSAGE)] * (len(found) - 3), 3]


def test_a_moved_set_never_passes_for_one_with_true_offsets(rig: Rig) -> None:
    """Two messages come first; with exactly those the wrapper's own offset would end its inner
    ones, which begin elsewhere."""
    rig.lead()
    count = 1000
    gap = plain([(None, MESSAGE)] * (count - 1), 0) + encode_entry(None, MESSAGE, count + 1)
    Meanwhile(rig, lambda: rig.append("first", "second"))
    rig.produce((*T, encode_entry(None, compress(1, gap), 0, 1)))
    offsets = [offset for offset, _ in values(rig)]
    assert offsets == [0, 1, *range(3, 3 + count)]


def test_leadership_lost_meanwhile(rig: Rig) -> None:
    partition = rig.lead(replicas=[ME, PEER], isr=[ME])
    Meanwhile(rig, lambda: rig.follow())
    assert rig.produce((*T, inflating(2 * LOOP_BYTES))) == {T: (6, -1)}
    assert partition.any_log().log_end_offset == 0


def test_leadership_lost_and_won_again_meanwhile(rig: Rig) -> None:
    """The log was cut: the set goes to where it ends now."""
    partition = rig.lead(replicas=[ME, PEER], isr=[ME])
    rig.append("a", "b")

    def bounce() -> None:
        rig.follow()
        partition.any_log().truncate_to(1)
        rig.lead(replicas=[ME, PEER], isr=[ME])

    Meanwhile(rig, bounce)
    assert rig.produce((*T, inflating(2 * LOOP_BYTES))) == {T: (0, 1)}


def test_a_set_that_is_always_overtaken_is_not_written(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appends, "_MOVED_ENTRIES", 3)
    monkeypatch.setattr(appends, "LOOP_STORED_BYTES", PLAIN_BYTES)
    partition = rig.lead()
    count = PLAIN_BYTES // len(MESSAGE) + 1
    data = encode_set([(None, MESSAGE)] * count)
    Meanwhile(rig, *[lambda: rig.append("quick")] * 3)
    assert rig.produce((*T, data)) == {T: (0, 3)}
    Meanwhile(rig, *[lambda: rig.append("quick")] * 100)
    end = partition.any_log().log_end_offset
    assert rig.produce((*T, data)) == {T: (7, -1)}
    assert partition.any_log().log_end_offset - end < 20


def test_a_request_inflates_only_so_far(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """Every wrapper alone is below the bound. Sets beyond it are refused, sets before it are
    stored, and one line is logged."""
    partition = rig.lead()
    for number in range(1, 6):
        rig.lead(partition=number)
    data = inflating(30 << 20)
    assert rig.produce((*T, data * 5)) == {T: (10, -1)}
    assert partition.any_log().log_end_offset == 0
    caplog.clear()
    answers = rig.produce(*(("t", number, data) for number in range(6)))
    assert answers is not None
    assert [answers["t", number][0] for number in range(6)] == [0, 0, 0, 0, 10, 10]
    assert len(caplog.messages) == 1
    assert "[t,4] failed due to A compressed message inflates past" in caplog.messages[0]


def test_more_bytes_give_more_room(rig: Rig) -> None:
    """Large sets that inflate like ordinary data are accepted."""
    small, large = memoryview(bytes(1000)), memoryview(bytes(20 << 20))
    key = TopicPartition(*T)
    assert appends.InflateBudget({key: small}).left == appends.REQUEST_BYTES
    assert appends.InflateBudget({key: large}).left == appends.REQUEST_RATIO * len(large)


def test_many_partitions_are_gone_through_in_turns(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    step = rig.clock.monotonic

    def slow() -> float:
        rig.clock.now += 0.001
        return step()

    monkeypatch.setattr(rig.clock, "monotonic", slow)
    monkeypatch.setattr(rig.runtime, "sleep", pauses.append)
    empty = memoryview(b"")
    request = ProduceRequest(
        1, 0, [ProduceTopic("nope", [ProducePartition(n, empty) for n in range(1000)])]
    )
    answer = rig.call(request)
    assert [each.error for each in answer.topics[0].partitions] == [3] * 1000
    assert len(pauses) > 100
    assert len(caplog.messages) == 1
    assert caplog.messages[0].endswith("and 997 more")


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [2 * LOOP_BYTES, 2 * SMALL_BYTES])
def test_long_batches_are_checked_elsewhere(rig: Rig, codec: int, size: int) -> None:
    """Format 2: the batch is small, and its records are not."""
    rig.lead()
    elsewhere = Meanwhile(rig)
    count = size // len(MESSAGE) + 1
    assert rig.produce((*T, batch([(None, MESSAGE, 0, [])] * count, codec=codec))) == {T: (0, 0)}
    assert elsewhere.calls == (1 if size < SMALL_BYTES else 2)


@pytest.mark.parametrize("codec", [1, 4])
def test_batches_of_a_request_inflate_only_so_far(rig: Rig, codec: int) -> None:
    for number in range(6):
        rig.lead(partition=number)
    data = batch([(None, bytes(30 << 20), 0, [])], codec=codec)
    answers = rig.produce(*(("t", number, data) for number in range(6)))
    assert answers is not None
    assert [answers["t", number][0] for number in range(6)] == [0, 0, 0, 0, 10, 10]


@pytest.mark.parametrize("codec", [1, 4])
def test_long_batches_are_converted_elsewhere(rig: Rig, codec: int) -> None:
    """For consumers of 0.8, which fetch what later producers have sent."""
    rig.lead()
    records = [(None, MESSAGE, 0, [])] * (2 * LOOP_BYTES // len(MESSAGE))
    assert rig.produce((*T, batch(records, codec=codec))) == {T: (0, 0)}
    elsewhere = Meanwhile(rig)
    assert len(values(rig)) == len(records)
    assert elsewhere.calls > 0


def unnumbered(size: int, codec: int = 1) -> bytes:
    """As ``inflating``, of format 1, with the offset 0 for every message."""
    one = encode_entry(None, MESSAGE, timestamp=7)
    packed = compress(codec, one * (size // len(one) + 1), magic=1)
    return encode_entry(None, packed, 0, codec, timestamp=0)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [LOOP_BYTES // 2, 2 * LOOP_BYTES, SMALL_BYTES + 1])
def test_a_set_that_is_numbered_elsewhere_and_then_moved(rig: Rig, size: int, codec: int) -> None:
    rig.lead()
    acts = [lambda: rig.append("between")] if size > LOOP_BYTES else []
    meanwhile = Meanwhile(rig, *acts)
    assert rig.produce((*T, unnumbered(size, codec))) == {T: (0, len(acts))}
    assert bool(meanwhile.calls) == (size > LOOP_BYTES)
    count = size // len(encode_entry(None, MESSAGE, timestamp=7)) + 1
    segment = rig.replicas.partitions[TopicPartition(*T)].any_log().segments[0]
    with open(segment.path, "rb") as file:
        stored = file.read()
    assert [m.offset for m in iter_messages(stored)] == list(range(count + len(acts)))
    (wrapper,) = [entry for entry in iter_entries(stored) if entry.codec]
    inside = timed_leaves(stored, wrapper.position, wrapper.stop).data
    assert [entry.offset for entry in iter_entries(inside)] == list(range(count))
