"""DStreams whose RDDs know their offset ranges, and how one is made on today's Spark.

Neither an InputDStream nor a Receiver can be written in Python. So a stream over an empty
directory gives the ticks, and a planner, called by the JVM once a batch, gives the RDDs.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.streaming import DStream, StreamingContext, util
from pyspark.streaming.dstream import TransformedDStream

from kafka08.errors import ConfigError
from kafka08.spark.rdd import planned_rdd

TransformFunction: Any = util.TransformFunction


class KafkaDStream(DStream[Any]):
    """A DStream whose ``foreachRDD`` and ``transform`` hand out KafkaRDDs."""

    def foreachRDD(self, func: Callable[..., None]) -> None:
        """Run ``func(rdd)`` or ``func(time, rdd)`` each batch."""
        function = TransformFunction(self._sc, _with_time(func), self._jrdd_deserializer)
        jvm: Any = self._ssc._jvm
        jvm.PythonDStream.callForeachRDD(self._jdstream, function.rdd_wrapper(planned_rdd))

    def transform(self, func: Callable[..., Any]) -> KafkaTransformedDStream:
        """The stream of what ``func(rdd)`` or ``func(time, rdd)`` returns."""
        return KafkaTransformedDStream(self, _with_time(func))


class KafkaTransformedDStream(TransformedDStream[Any]):
    """The result of ``KafkaDStream.transform``, whose function gets KafkaRDDs."""

    @property
    def _jdstream(self) -> Any:
        if self._jdstream_val is None:
            function = TransformFunction(self._sc, self.func, self.prev._jrdd_deserializer)
            self._jdstream_val = transformed(self._ssc, self.prev, function)
        return self._jdstream_val


def _with_time(func: Callable[..., Any]) -> Callable[..., Any]:
    arguments = func.__code__.co_argcount
    if arguments == 1:
        return lambda _, rdd: func(rdd)
    assert arguments == 2, "func should take one or two arguments"
    return func


def transformed(ssc: StreamingContext, parent: Any, function: Any) -> Any:
    """The Java stream of ``function`` over ``parent``."""
    wrapped = function.rdd_wrapper(planned_rdd)
    jvm: Any = ssc._jvm
    return jvm.PythonTransformedDStream(parent._jdstream.dstream(), wrapped).asJavaDStream()


def planned_stream(ssc: StreamingContext, planner: Any) -> KafkaDStream:
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
