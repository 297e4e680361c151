"""Machine code for the inner loops. Every module here is optional and has a Python twin."""

from __future__ import annotations

import logging
import os
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from types import ModuleType

# An installer writes all files of a package within this time, in any order.
_SLACK_S = 10.0

logger = logging.getLogger("kafka08")


def load(name: str, directory: str = os.path.dirname(__file__)) -> ModuleType | None:
    """The module of this name, or None if it was not built, or was built before its source changed
    (as after an update of a checkout), which is logged."""
    if is_stale(name, directory):
        logger.warning(
            "%s.%s was built from an older source and is not used; build it with: make setup",
            __name__,
            name,
        )
        return None
    try:
        return import_module(f"{__name__}.{name}")
    except ImportError:
        return None


def is_stale(name: str, directory: str) -> bool:
    """Whether the module's source in ``directory`` is newer than the module. False if either is
    missing."""
    stem = os.path.join(directory, name)
    try:
        changed = os.stat(stem + ".pyx").st_mtime
        built = os.stat(stem + EXTENSION_SUFFIXES[0]).st_mtime
    except OSError:
        return False
    return changed > built + _SLACK_S
