"""Stands in for ``pyspark.worker`` where ``spark.python.use.daemon`` is ``false``.

Spark starts the module that ``spark.python.worker.module`` names for each task.
"""

from __future__ import annotations

import runpy

from kafka08.spark.old_jobs import old_name


def main() -> None:
    old_name.install()
    # The module connects to Spark, in each version in its own way, if it is the main one.
    runpy.run_module("pyspark.worker", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
