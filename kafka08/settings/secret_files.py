"""Warns of files with keys or passwords that others than their owner can read."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from kafka08.settings.settings import is_secret

logger = logging.getLogger("kafka.utils.VerifiableProperties")


def warn_if_open(path: str | os.PathLike[str], content: str) -> None:
    """``content``: the secret that the file has, for the log. Raises OSError."""
    if os.stat(path).st_mode & 0o077:
        logger.warning("Others than the owner can read %s, which has %s", path, content)


def warn_of_passwords(path: str | os.PathLike[str], properties: Mapping[str, str]) -> None:
    """The same for a file of ``properties``, if there are passwords or keys among them."""
    found = sorted(key for key, value in properties.items() if value and is_secret(key))
    if found:
        warn_if_open(path, ", ".join(found))
