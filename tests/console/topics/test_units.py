"""kafka08.console.topics.units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka08.console.topics.units import parsed, plain
from kafka08.settings.settings import LONG_MAX

KEYS = ("retention.ms", "retention.bytes", "flush.ms", "flush.messages", "segment.bytes", "other")
KEYS += ("log.retention.hours", "offsets.retention.minutes", "quota.window.size.seconds")
KEYS += ("log.retention.bytes", "leader.replication.throttled.rate", "log.flush.interval.ms")
KEYS += ("leader.imbalance.per.broker.percentage", "max.connection.creation.rate")
UNITS = (1, 1000, 60_000, 3_600_000, 86_400_000, 1 << 10, 1 << 20, 1 << 30)
LONGS = st.integers(-(2**63), LONG_MAX)


@given(st.sampled_from(KEYS), LONGS | st.sampled_from([-1, 0, LONG_MAX]))
def test_any_number_that_is_shown_is_read_again(key: str, number: int) -> None:
    assert parsed(key, plain(key, number)) == number


@given(st.sampled_from(KEYS), st.integers(-1000, 1000), st.sampled_from(UNITS))
def test_whole_units_are_read_again(key: str, count: int, unit: int) -> None:
    shown = plain(key, count * unit)
    assert parsed(key, shown) == count * unit
    assert parsed(key, f"  {shown.upper()} ") == count * unit


@given(st.sampled_from(KEYS), LONGS)
def test_plain_numbers_are_read(key: str, number: int) -> None:
    assert parsed(key, str(number)) == number


@pytest.mark.parametrize(
    ("key", "number", "shown"),
    [
        ("retention.ms", 604800000, "7 days"),
        ("retention.ms", 86400000, "1 day"),
        ("retention.ms", 5400000, "90 min"),
        ("retention.ms", -1, "no limit"),
        ("retention.ms", LONG_MAX, "largest number"),
        ("flush.ms", LONG_MAX, "never"),
        ("flush.ms", 0, "0 ms"),
        ("flush.messages", LONG_MAX, "never"),
        ("flush.messages", 5, "5"),
        ("max.compaction.lag.ms", LONG_MAX, "no limit"),
        ("segment.bytes", 1073741824, "1 GiB"),
        ("max.message.bytes", 1000012, "1000012 bytes"),
        ("retention.bytes", -1, "no limit"),
        ("log.retention.bytes", -1, "no limit"),
        ("log.retention.hours", 168, "7 days"),
        ("log.retention.hours", 36, "36 h"),
        ("log.retention.minutes", 90, "90 min"),
        ("kafka.metrics.polling.interval.secs", 10, "10 s"),
        ("log.flush.interval.ms", LONG_MAX, "never"),
        ("leader.replication.throttled.rate", 10485760, "10 MiB/s"),
        ("leader.replication.throttled.rate", LONG_MAX, "no limit"),
        ("offsets.load.buffer.size", 5242880, "5 MiB"),
    ],
)
def test_how_numbers_are_shown(key: str, number: int, shown: str) -> None:
    assert plain(key, number) == shown


@pytest.mark.parametrize(
    ("key", "text", "number"),
    [
        ("retention.ms", "7d", 604800000),
        ("retention.ms", "12 h", 43200000),
        ("retention.ms", "1.5 Hours", 5400000),
        ("retention.ms", "never", -1),
        ("retention.bytes", "512 MB", 512_000_000),
        ("retention.bytes", "512 MiB", 512 << 20),
        ("flush.messages", "+7", 7),
        ("log.retention.hours", "2 days", 48),
        ("leader.replication.throttled.rate", "10 MiB/s", 10485760),
        ("leader.replication.throttled.rate", "10 mb", 10_000_000),
    ],
)
def test_how_numbers_are_written(key: str, text: str, number: int) -> None:
    assert parsed(key, text) == number


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("retention.ms", ""),
        ("retention.ms", "7 MB"),
        ("retention.ms", "a week"),
        ("retention.ms", "0.5"),
        ("retention.ms", "1 h 5 min"),
        ("retention.ms", "9" * 30),
        ("retention.bytes", "1 day"),
        ("retention.bytes", "٣"),
        ("flush.messages", "5 ms"),
        ("flush.messages", "0x10"),
        ("log.retention.hours", "1 MiB"),
        ("log.retention.hours", "90 min"),
        ("retention.bytes", "1 MiB/s"),
        ("flush.messages", "1/s"),
        ("leader.replication.throttled.rate", "1 day"),
        ("leader.replication.throttled.rate", "5 /s"),
    ],
)
def test_other_texts_are_refused(key: str, text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        parsed(key, text)
