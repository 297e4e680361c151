"""``kafka08-spark-submit``, and the same for notebooks: jobs of Spark 1 and 2 run as they are."""

from kafka08.spark.submit.command import install, main

__all__ = ["install", "main"]
