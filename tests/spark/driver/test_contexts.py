"""How many batches a checkpoint has to know, and the offset log beside it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from kafka08.spark.driver import contexts
from kafka08.spark.files.offset_log import DIRECTORY
from kafka08.spark.planner import Range


def context(remembered_ms: int, batch_ms: int, directory: Path | None = None) -> Any:
    """A StreamingContext whose streams remember so much."""
    duration = SimpleNamespace(milliseconds=lambda: remembered_ms)
    scala = SimpleNamespace(
        checkpointDir=lambda: None if directory is None else str(directory),
        graph=lambda: SimpleNamespace(getMaxInputStreamRememberDuration=lambda: duration),
        progressListener=lambda: SimpleNamespace(batchDuration=lambda: batch_ms),
    )
    return SimpleNamespace(_jssc=SimpleNamespace(ssc=lambda: scala))


def test_as_many_batches_as_the_longest_window_needs() -> None:
    assert contexts.batches_needed(context(3_600_000, 500)) == 14_400


def test_there_is_no_log_without_a_checkpoint() -> None:
    assert contexts.offset_log(context(60_000, 1000), "s") is None


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_log_has_the_batches_of_the_longest_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setattr(contexts, "KEPT", 2)
    found = context(3000, 1000, tmp_path)
    checkpoint = f"{scheme}{tmp_path}"
    found._jssc.ssc().checkpointDir = lambda: checkpoint
    log = contexts.offset_log(found, "s")
    assert log is not None
    for second in range(1, 9):
        log.write(1000 * second, [Range("t", 0, second, second + 1)])
    names = sorted(int(path.name) for path in (tmp_path / DIRECTORY / "s").iterdir())
    assert names == [1000 * second for second in range(3, 9)]
