"""Lets ``import pyspark.streaming.kafka`` work where Spark no longer has that module.

The module is then made of the names of ``kafka08.spark.dstream``. The classes stay those of
``kafka08.spark``, so that pickles and checkpoints are the same with both imports, and pickles that
have the old name can be read too.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

OLD_NAME = "pyspark.streaming.kafka"
NEW_NAME = "kafka08.spark.dstream"


class OldNameFinder(MetaPathFinder, Loader):
    """Finds OLD_NAME, and nothing else."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != OLD_NAME:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=NEW_NAME)

    def exec_module(self, module: ModuleType) -> None:
        new = importlib.import_module(NEW_NAME)
        module.__doc__ = new.__doc__
        vars(module).update({name: getattr(new, name) for name in ("__all__", *new.__all__)})


def install() -> None:
    """For this process, once. Finders that were there before have priority, so that a module of
    Spark 2 is still the one that is imported."""
    if not any(isinstance(each, OldNameFinder) for each in sys.meta_path):
        sys.meta_path.append(OldNameFinder())
