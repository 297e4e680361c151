"""Shows how far the Spark jobs of a call are: how many of the tasks known so far have ended."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from pyspark import SparkContext

from kafka08.progress import Progress
from kafka08.runtime import Runtime, Scheduler, ThreadRuntime

T = TypeVar("T")

POLL_MS = 1000


def followed(
    context: SparkContext, text: str, call: Callable[[], T], runtime: Runtime | None = None
) -> T:
    """The result of ``call``, which runs Spark jobs in this thread; ``text`` says what for.

    On stderr: a bar if it is a terminal, else a line a minute.
    """
    runtime = runtime or ThreadRuntime()
    # Each job needs a group of its own: another one would take away its name.
    group = context.getLocalProperty("spark.jobGroup.id")
    before = set(context.statusTracker().getJobIdsForGroup(group))
    progress = Progress(None, text, unit="tasks", millis=runtime.clock.millis)
    scheduler = Scheduler(runtime)
    scheduler.every("job-progress", POLL_MS, partial(_show, context, group, before, progress))
    try:
        return call()
    finally:
        scheduler.stop()
        progress.close()


def _show(context: SparkContext, group: str | None, before: set[int], progress: Progress) -> None:
    done = total = 0
    tracker = context.statusTracker()
    for number in set(tracker.getJobIdsForGroup(group)) - before:
        job = tracker.getJobInfo(number)
        for stage in job.stageIds if job is not None else ():
            info = tracker.getStageInfo(stage)
            if info is not None:
                done += info.numCompletedTasks
                total += info.numTasks
    if total:
        progress.show(done, total)
