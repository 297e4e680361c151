"""Runs an old job in the driver: ``runner.py JOB.py ARGS``, as spark-submit starts it.

The job finds itself as ``python JOB.py ARGS`` would have started it, except that
``pyspark.streaming.kafka`` can be imported. It becomes ``__main__``, whose functions Spark pickles
by value. This file's own directory is not in the job's path.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType


class Program(SourceFileLoader):
    """Executes a file without a cache of its bytecode, which its directory may not take."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def main(argv: list[str]) -> None:
    """``argv`` is the job with its arguments. Raises what the job raises."""
    job = os.path.abspath(argv[0])
    sys.argv = argv
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.realpath(job))
    importlib.import_module("kafka08.spark.old_jobs.old_name").install()
    program = Program("__main__", job)
    module = ModuleType("__main__")
    vars(module).update(__file__=job, __loader__=program, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    try:
        program.exec_module(module)
    except SyntaxError as error:
        if error.filename == job:
            hint = f"kafka08-spark-submit --check {argv[0]} lists what to change for Python 3"
            print(hint, file=sys.stderr)
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
