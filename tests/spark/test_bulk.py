from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from kafka08.spark.bulk import followed
from tests.fakes.runtime import FakeRuntime


class Context:
    """The part of a SparkContext that is needed: job 1 is an old one, job 2 that of the call."""

    def __init__(self, group: str | None) -> None:
        self._group = group
        self.running = False
        self.ended_tasks = 0

    def getLocalProperty(self, name: str) -> str | None:
        assert name == "spark.jobGroup.id"
        return self._group

    def statusTracker(self) -> Any:
        return self

    def getJobIdsForGroup(self, group: str | None) -> list[int]:
        assert group == self._group
        return [1, 2] if self.running else [1]

    def getJobInfo(self, number: int) -> Any:
        assert number == 2
        return SimpleNamespace(stageIds=[7, 8])

    def getStageInfo(self, stage: int) -> Any:
        """The second stage has not begun."""
        if stage == 8:
            return None
        return SimpleNamespace(numTasks=40, numCompletedTasks=self.ended_tasks)


@pytest.mark.parametrize("group", [None, "mine"])
def test_tasks_of_the_jobs_of_the_call(
    group: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    context: Any = Context(group)
    runtime = FakeRuntime()

    def call() -> str:
        context.running = True
        for _ in range(3):
            runtime.clock.advance(30)
            context.ended_tasks += 10
            runtime.step("job-progress")
        return "done"

    assert followed(context, "Run 3", call, runtime) == "done"
    assert capsys.readouterr().err == "Run 3: 20 of 40 tasks (50 %)\n"
    assert runtime.tasks[0].ended


def test_the_watch_ends_with_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    context: Any = Context(None)
    runtime = FakeRuntime()

    def call() -> None:
        raise ValueError("no such file")

    with pytest.raises(ValueError, match="no such file"):
        followed(context, "Run 3", call, runtime)
    assert runtime.tasks[0].ended
    assert capsys.readouterr().err == ""
