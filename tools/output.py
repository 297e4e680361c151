"""Standard output of tools that print messages: raw bytes, flushed one by one, maybe closed."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO


def stdout() -> BinaryIO:
    return sys.stdout.buffer


def abandon_stdout() -> None:
    """After a broken pipe: let Python's flush at exit go nowhere instead of failing again."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass
