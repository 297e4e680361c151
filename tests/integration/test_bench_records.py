"""The benchmark's records: the distribution of sizes, and sets that the broker's code reads."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest

from integration.bench import records, trace
from integration.bench.records import AROUND_1K, AROUND_100, EQUAL_100, Batch, Sizes
from kafka08.message.entry import AnyMessage
from kafka08.message.sets import iter_messages


def messages(batch: Batch) -> list[AnyMessage]:
    return list(iter_messages(batch.message_set))


@pytest.mark.parametrize("sizes", [AROUND_100, AROUND_1K])
def test_sizes_are_log_normal_around_their_median(sizes: Sizes) -> None:
    noise = random.Random(1)
    found = sorted(sizes.draw(noise) for _ in range(20_000))
    assert statistics.mean(found) == pytest.approx(sizes.median * 1.28, rel=0.03)
    for share, times in ((0.05, 0.32), (0.5, 1), (0.95, 3.2), (0.99, 5.1)):
        value = found[int(share * len(found))]
        assert value == pytest.approx(sizes.median * times, rel=0.08), share
    assert statistics.stdev(map(math.log, found)) == pytest.approx(records.SIGMA, rel=0.03)


def test_sets_hold_sizes_as_they_were_drawn() -> None:
    """That a set is full must not keep the large ones out."""
    noise = random.Random(2)
    sets = records.sets(records.stream(AROUND_1K, False, noise), 4096, "none")
    found = [len(m.value or b"") for each in itertools.islice(sets, 2000) for m in messages(each)]
    assert statistics.mean(found) == pytest.approx(1024 * 1.28, rel=0.05)
    assert max(found) > 4096


def test_equal_sizes_are_equal() -> None:
    found = {len(m.value or b"") for b in records.batches(EQUAL_100, 4096) for m in messages(b)}
    assert found == {100}


@pytest.mark.parametrize("codec", list(records.CODECS))
@pytest.mark.parametrize("keyed", [False, True])
def test_sets_are_what_they_say(codec: str, keyed: bool) -> None:
    for batch in records.batches(AROUND_100, 4096, codec, keyed):
        found = messages(batch)
        assert [m.offset for m in found] == list(range(batch.records))
        assert batch.payload == sum(len(m.key or b"") + len(m.value or b"") for m in found)
        assert all((m.key is not None) == keyed for m in found)
        if keyed:
            assert {len(m.key or b"") for m in found} <= set(range(8, 25))
        if codec == "none":
            assert batch.ends[-1] == len(batch.message_set) <= 4096
            assert len(batch.ends) == batch.records
        else:
            assert not batch.ends
            assert len(batch.message_set) < batch.payload


def test_sets_of_one_kind_differ() -> None:
    found = records.batches(AROUND_100, 16384)
    assert len({each.message_set for each in found}) == len(found) >= records.FEWEST_SETS
    assert len({each.records for each in found}) > 5


def test_a_set_of_nothing_but_one_record() -> None:
    assert {each.records for each in records.batches(AROUND_1K, 0)} == {1}


def test_two_runs_send_the_same() -> None:
    first = records.batches(AROUND_100, 16384, "none", True)
    records.batches.cache_clear()
    records.words.cache_clear()
    assert records.batches(AROUND_100, 16384, "none", True) == first


def test_the_text_compresses_about_as_log_lines_do() -> None:
    batch = records.batches(AROUND_100, 16384, "gzip")[0]
    assert 2 < batch.payload / len(batch.message_set) < 4


def test_the_day_has_every_service_in_every_shape() -> None:
    found = trace.day()
    trace.day.cache_clear()
    assert trace.day() == found
    assert [each.hour for each in found] == sorted(each.hour for each in found)
    assert {each.service for each in found} == set(trace.SERVICES)
    assert {each.service.codec for each in found} == set(records.CODECS)
    for each in found[::40]:
        assert len(messages(each.batch)) == each.batch.records


def test_sets_are_small_at_night_and_full_by_day() -> None:
    found = trace.day()

    def mean(first: int, last: int) -> float:
        clicks = [e for e in found if e.service.topic == "clicks" and first <= e.hour <= last]
        return statistics.mean(each.batch.records for each in clicks)

    assert mean(13, 19) > 2 * mean(2, 6)
    assert trace.traffic(4) == pytest.approx(trace.LEAST)
    assert trace.traffic(16) == pytest.approx(1)


def test_all_answers_of_a_day_have_one_size() -> None:
    assert {len(topic) for topic in trace.topics("day0001")} == {len("day0001-clicks")}
