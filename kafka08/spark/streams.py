"""DStreams whose RDDs know their offset ranges, and how one is made on today's Spark.

Neither an InputDStream nor a Receiver can be written in Python. So a stream over an empty
directory gives the ticks, and a planner, called by the JVM once a batch, gives the RDDs.
"""

from __future__ import annotations

import os
import stat
import tempfile
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from pyspark import SparkContext
from pyspark.streaming import DStream, StreamingContext, util
from pyspark.streaming.dstream import TransformedDStream

from kafka08.errors import ConfigError
from kafka08.spark.driver import contexts
from kafka08.spark.driver.backpressure import PidRateEstimator
from kafka08.spark.files.hadoop import Java
from kafka08.spark.planner import Range
from kafka08.spark.rdd import Elements, PlannedRDD, planned_rdd
from kafka08.spark.values import Element

BATCHES_KEPT = 100
BACKPRESSURE = "spark.streaming.backpressure.enabled"
INITIAL_RATE = "spark.streaming.backpressure.initialRate"
PID = "spark.streaming.backpressure.pid."

T = TypeVar("T")

TransformFunction: Any = util.TransformFunction


class KafkaDStream(DStream[Element]):
    """A DStream whose ``foreachRDD`` and ``transform`` hand out KafkaRDDs."""

    def foreachRDD(self, func: Callable[..., None]) -> None:
        """Run ``func(rdd)`` or ``func(time, rdd)`` each batch."""
        function = TransformFunction(self._sc, _with_time(func), self._jrdd_deserializer)
        jvm: Java = self._ssc._jvm
        jvm.PythonDStream.callForeachRDD(self._jdstream, function.rdd_wrapper(planned_rdd))

    def transform(self, func: Callable[..., Element]) -> KafkaTransformedDStream:
        """The stream of what ``func(rdd)`` or ``func(time, rdd)`` returns."""
        return KafkaTransformedDStream(self, _with_time(func))


class KafkaTransformedDStream(TransformedDStream[Element]):
    """The result of ``KafkaDStream.transform``, whose function gets KafkaRDDs."""

    @property
    def _jdstream(self) -> Java:
        if self._jdstream_val is None:
            function = TransformFunction(self._sc, self.func, self.prev._jrdd_deserializer)
            self._jdstream_val = transformed(self._ssc, self.prev, function)
        return self._jdstream_val


def _with_time(func: Callable[..., T]) -> Callable[..., T]:
    arguments = func.__code__.co_argcount
    if arguments == 1:
        return lambda _, rdd: func(rdd)
    assert arguments == 2, "func should take one or two arguments"
    return func


def transformed(ssc: StreamingContext, parent: DStream[Element], function: Java) -> Java:
    """The Java stream of ``function`` over ``parent``."""
    wrapped = function.rdd_wrapper(planned_rdd)
    jvm: Java = ssc._jvm
    return jvm.PythonTransformedDStream(parent._jdstream.dstream(), wrapped).asJavaDStream()


def planned_stream(ssc: StreamingContext, planner: Callable[..., PlannedRDD]) -> KafkaDStream:
    """The stream of the RDDs that ``planner(time, _)`` returns, called once a batch.

    Checkpoints pickle the planner.
    """
    tick = ssc.textFileStream(tick_directory().as_uri())
    function = TransformFunction(ssc._sc, planner, tick._jrdd_deserializer)
    return KafkaDStream(transformed(ssc, tick, function), ssc, ssc._sc.serializer)


def tick_directory() -> Path:
    """A directory without files, of this user alone. Raises ConfigError for that of another.

    Its path is in checkpoints, so it has to be the same each time.
    """
    path = Path(tempfile.gettempdir(), f"kafka08-tick-{os.getuid()}")
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise ConfigError(f"{path} belongs to another user. Remove it, or set TMPDIR.")
    if found.st_mode & 0o077:
        raise ConfigError(f"Others may write to or read {path}: chmod 700, or remove it.")
    return path


def conf_of(sc: SparkContext, key: str, default: str) -> str:
    return str(sc._conf.get(key, default))


class Rate:
    """The rate that backpressure allows, learnt from the batches of one run."""

    def __init__(self, sc: SparkContext, batch_ms: int) -> None:
        self._estimator = PidRateEstimator(
            batch_ms,
            proportional=float(conf_of(sc, PID + "proportional", "1.0")),
            integral=float(conf_of(sc, PID + "integral", "0.2")),
            derivative=float(conf_of(sc, PID + "derived", "0.0")),
            min_rate=float(conf_of(sc, PID + "minRate", "100")),
        )
        self.rate = float(conf_of(sc, INITIAL_RATE, "0"))
        self._sizes: dict[int, int] = {}

    def planned(self, batch_ms: int, size: int) -> None:
        self._sizes[batch_ms] = size

    def completed(self, batch_ms: int, info: Java) -> None:
        found = self._estimator.compute(
            int(info.processingEndTime()),
            self._sizes.pop(batch_ms, 0),
            int(info.processingDelay()),
            int(info.schedulingDelay()),
        )
        self.rate = self.rate if found is None else found


class StreamRun:
    """A planner's objects while its stream runs, which a checkpoint must not contain.

    ``rate``: None without backpressure. ``kept``: of how many batches a checkpoint has the ranges.
    """

    kept = BATCHES_KEPT

    def __init__(self, ssc: StreamingContext, batch_ms: int) -> None:
        self.ssc = ssc
        self.rate: Rate | None = None
        if conf_of(ssc._sc, BACKPRESSURE, "false").lower() == "true":
            self.rate = Rate(ssc._sc, batch_ms)


R = TypeVar("R", bound=StreamRun)


class BatchPlanner(Generic[R]):
    """``planner(time, _)``: the RDD of a batch, which ``plan`` makes.

    Part of every checkpoint, as its attributes are: without what runs.
    """

    def __init__(self, ssc: StreamingContext, elements: Elements) -> None:
        self.stream = uuid.uuid4().hex
        self._stream_id = int(ssc._jssc.ssc().getNewInputStreamId())
        self._batch_ms = contexts.batch_ms(ssc)
        self._elements = elements
        self._batches: dict[int, list[Range]] = {}
        self._running: R | None = None
        self._ssc: StreamingContext | None = contexts.take(ssc, self.stream)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_running": None, "_ssc": None}

    def __call__(self, time: datetime, _: object = None) -> PlannedRDD:
        sc = SparkContext._active_spark_context
        assert sc is not None
        batch_ms = round(time.timestamp() * 1000)
        try:
            if self._running is None:
                tick_directory()
                ssc = self._ssc or contexts.recovered_context(sc, self.stream)
                self._running = None if ssc is None else self.run(ssc)
            return self.plan(sc, batch_ms, self._running)
        except Exception:
            if batch_ms > max(self._batches, default=0):
                # Spark drops it, and its messages are for the next one; windows still ask for it.
                self._keep(batch_ms, [])
            raise

    def run(self, ssc: StreamingContext) -> R:
        """The objects that ``plan`` needs, made when the stream is started."""
        raise NotImplementedError

    def plan(self, sc: SparkContext, batch_ms: int, running: R | None) -> PlannedRDD:
        """``running``: None if the context of a recovered stream is not known."""
        raise NotImplementedError

    def _is_before(self, batch_ms: int) -> bool:
        """Whether the ranges of this batch, if it had any, are forgotten."""
        return bool(self._batches) and batch_ms < min(self._batches)

    def _keep(self, batch_ms: int, ranges: Sequence[Range]) -> None:
        self._batches[batch_ms] = list(ranges)
        kept = BATCHES_KEPT if self._running is None else self._running.kept
        while len(self._batches) > kept:
            del self._batches[min(self._batches)]

    def _remember(self, running: R | None, batch_ms: int, ranges: Sequence[Range]) -> None:
        """Keep the ranges of a batch, and have ``running`` show them."""
        self._keep(batch_ms, ranges)
        if running is None:
            return
        if running.rate is not None:
            running.rate.planned(batch_ms, sum(each.size for each in ranges))
        contexts.report_input(running.ssc, self._stream_id, batch_ms, ranges)
