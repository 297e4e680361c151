"""Files without a name: they go when their last descriptor is closed."""

from __future__ import annotations

import os


def open_unnamed(label: str) -> int:
    """The descriptor of an empty file, in memory where the system has such files. ``label``
    is shown among the files of the process. Raises OSError."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(label)
    from tempfile import TemporaryFile  # 0.5 MB with all that it loads

    with TemporaryFile() as file:
        return os.dup(file.fileno())
