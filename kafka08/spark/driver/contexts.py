"""Finds the StreamingContext of a planner, also after a recovery, and its properties.

A planner is called while the context starts, when Spark holds the locks of the context. This module
must not read the context's state or the active context then, as that would deadlock.
"""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable, Sequence

from pyspark import SparkContext
from pyspark.streaming import StreamingContext
from pyspark.streaming.listener import StreamingListener

from kafka08.spark.files.hadoop import HadoopFiles, Java
from kafka08.spark.files.offset_log import DIRECTORY, KEPT, Files, LocalFiles, OffsetLog
from kafka08.spark.planner import Range

logger = logging.getLogger("kafka08.spark.contexts")

_taken: weakref.WeakKeyDictionary[StreamingContext, set[str]] = weakref.WeakKeyDictionary()


def take(ssc: StreamingContext, stream: str) -> StreamingContext:
    """``stream`` works for this context."""
    _taken.setdefault(ssc, set()).add(stream)
    return ssc


def recovered_context(sc: SparkContext, stream: str) -> StreamingContext | None:
    """The context that ``getOrCreate`` made out of a checkpoint with ``stream`` in it.

    A recovered planner does not get its context, but the code that starts the context has it.
    """
    for found in gc.get_objects():
        if type(found) is not StreamingContext or found._sc is not sc:
            continue
        if stream not in _taken.get(found, ()) and found._jssc.ssc().isCheckpointPresent():
            return take(found, stream)
    return None


def batch_ms(ssc: StreamingContext) -> int:
    return int(ssc._jssc.ssc().progressListener().batchDuration())


def batches_needed(ssc: StreamingContext) -> int:
    """How many batches the windows of a recovered context may ask for.

    Twice what Spark itself remembers, since a checkpoint may be behind its batches. For a context
    that has been started.
    """
    remembered = ssc._jssc.ssc().graph().getMaxInputStreamRememberDuration()
    return 2 * int(remembered.milliseconds()) // batch_ms(ssc)


def offset_log(ssc: StreamingContext, stream: str) -> OffsetLog | None:
    """Beside the checkpoint; None without one."""
    directory = ssc._jssc.ssc().checkpointDir()
    if directory is None:
        return None
    path = f"{directory}/{DIRECTORY}/{stream}"
    scheme, colon, rest = path.partition(":")
    files: Files
    if not colon:
        files = LocalFiles(path)
    elif scheme == "file":
        files = LocalFiles("/" + rest.lstrip("/"))
    else:
        files = HadoopFiles(ssc._sc, path)
    return OffsetLog(files, max(KEPT, batches_needed(ssc)))


def report_input(
    ssc: StreamingContext, stream_id: int, time_ms: int, ranges: Sequence[Range]
) -> None:
    """Show in the UI what a batch reads. May be called once per batch."""
    try:
        jvm: Java = ssc._jvm
        scheduler = jvm.org.apache.spark.streaming.scheduler
        text = "\n".join(
            f"topic: {r.topic}\tpartition: {r.partition}\toffsets: {r.start} to {r.end}"
            for r in ranges
            if r.size
        )
        description = scheduler.StreamInputInfo.METADATA_KEY_DESCRIPTION()
        metadata = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({description: text})
        info = scheduler.StreamInputInfo(stream_id, sum(r.size for r in ranges), metadata)
        time = jvm.org.apache.spark.streaming.Time(time_ms)
        ssc._jssc.ssc().scheduler().inputInfoTracker().reportInfo(time, info)
    except Exception as error:
        logger.debug("The input of batch %d is not shown: %s", time_ms, error)


class BatchListener(StreamingListener):
    """Calls ``completed(batch ms, ok, info)`` after each batch, ``submitted(batch ms)`` before."""

    def __init__(
        self,
        completed: Callable[[int, bool, Java], None],
        submitted: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__()
        self._completed = completed
        self._submitted = submitted

    def onBatchSubmitted(self, batchSubmitted: Java) -> None:
        if self._submitted is not None:
            self._submitted(int(batchSubmitted.batchInfo().batchTime().milliseconds()))

    def onBatchCompleted(self, batchCompleted: Java) -> None:
        info = batchCompleted.batchInfo()
        operations = info.outputOperationInfos().values()
        ok = all(each.failureReason() is None for each in operations)
        try:
            self._completed(int(info.batchTime().milliseconds()), ok, info)
        except Exception:
            logger.exception("The work after a batch failed")
