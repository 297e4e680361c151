"""Summaries that programs print, and the tables made of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.bench import real, waiting
from integration.bench.real import Outcome, Sample

PRODUCED = """\
100 records sent, 10.0 records/sec (0.00 MB/sec), 6.7 ms avg latency, 9.0 ms max latency.
2000000 records sent, 500000.000000 records/sec (47.68 MB/sec), 7.25 ms avg latency, \
311.00 ms max latency, 6 ms 50th, 30 ms 95th, 75 ms 99th, 90 ms 99.9th.
"""
CONSUMED = (
    "2026-11-30 14:04:22:875, 2026-11-30 14:04:24:050, 8.5831, 7.3047, 90000, 76595.7447, 716, 459,"
    " 18.6995, 196078.4314\nlog4j:WARN No appenders could be found\n"
)
LIBRDKAFKA = """\
% Sending messages to topic t, partition -1
% 300000 messages produced (30000000 bytes), 300000 delivered (offset 0, 0 failed) in 1500ms: \
200000 msgs/s and 20.00 MB/s, 0 produce failures, 0 in queue, no compression
"""


def test_the_summary_of_a_producer_is_its_last_line() -> None:
    assert real.produced(PRODUCED) == Outcome(2_000_000, 4.0, 6.0, 75.0)


def test_a_consumer_counts_from_its_first_fetch() -> None:
    assert real.consumed(CONSUMED) == Outcome(90_000, 0.459)


def test_the_summary_of_librdkafka() -> None:
    assert real.rdkafka(LIBRDKAFKA) == Outcome(300_000, 1.5)


@pytest.mark.parametrize("parse", [real.produced, real.consumed, real.rdkafka])
def test_a_program_that_fails_has_no_summary(parse: Callable[[str], Outcome]) -> None:
    with pytest.raises(ValueError, match=r"no summary.*: refused"):
        parse("refused")


def test_table_of_programs() -> None:
    samples = {
        ("produce", "ours"): [
            Sample(Outcome(1_000_000, 2.0, 1.0, 5.0), 0.5),
            Sample(Outcome(1_000_000, 4.0, 1.0, 7.0), 0.7),
            Sample(Outcome(1_000_000, 2.5, 1.0, 6.0), 0.6),
        ],
        ("produce", "new"): [Sample(Outcome(1_000_000, 5.0, 2.0, 12.0), 1.2)],
    }
    assert real.table(samples, ["ours", "old", "new"]).splitlines()[2:] == [
        "| produce | 400 | 0.6 | 1 | 6 |  |  |  | 2.00 | 0.50 | 0.50 |"
    ]


def test_table_of_waiting_times() -> None:
    found = {("create", "ours"): [0.2, 0.1, 0.4], ("create", "old"): [0.4], ("x", "old"): [1.0]}
    assert waiting.table(found, ["ours", "old"]).splitlines()[2:] == [
        "| create | 0.2 | 0.4 | 0.50 |",
        "| x |  | 1 |  |",
    ]


def test_the_last_member_ends_the_wait() -> None:
    all_ = waiting.Barrier(2)
    all_.reached()
    assert not all_.is_over
    all_.reached()
    assert all_.is_over
