"""The RDD that runs a function, which Spark 4 moved to another module."""

try:
    from pyspark.core.rdd import PipelinedRDD
except ImportError:  # before 4.0
    from pyspark.rdd import PipelinedRDD  # type: ignore[no-redef]

__all__ = ["PipelinedRDD"]
