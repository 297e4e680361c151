from __future__ import annotations

import pytest

from kafka08.log.recovery.loading import Loading, Work
from tests.fakes.runtime import FakeClock


def test_a_line_a_minute_for_each_directory_that_is_not_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    todo = {"/a": Work(2, 4_000_000), "/b": Work(3, 0), "/c": Work(1, 1_000_000)}
    with caplog.at_level("INFO", "kafka.log.LogManager"):
        loading = Loading(todo, clock)
        loading.recovered("/c", 1_000_000)
        loading.loaded("/c")
        loading.loaded("/b")
        clock.advance(59)
        loading.recovered("/a", 1_000_000)
        assert caplog.messages == []
        clock.advance(1)
        loading.recovered("/a", 2_000_000)
        assert caplog.messages == [
            "Loaded 0 of 2 logs in /a, 3.0 MB of 4.0 MB (75 %) recovered",
            "Loaded 1 of 3 logs in /b",
        ]
        clock.advance(59)
        loading.loaded("/a")
        assert len(caplog.messages) == 2
