"""Stands in for ``pyspark.daemon``, which forks the Python workers of an executor.

Spark starts the module that ``spark.python.daemon.module`` names. The workers inherit the import of
``pyspark.streaming.kafka``, in tasks and in the files of ``--py-files``. Writes nothing to stdout,
where Spark reads the daemon's port.
"""

from __future__ import annotations

from pyspark import daemon

from kafka08.spark.old_jobs import old_name


def main() -> None:
    old_name.install()
    daemon.manager()


if __name__ == "__main__":
    main()
