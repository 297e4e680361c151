"""Checks the names of groups and clients (kafka.common.Config)."""

from __future__ import annotations

import re

from kafka08.errors import ConfigError

_ID = re.compile(r"[A-Za-z0-9._-]*")


def check_id(key: str, value: str | None) -> None:
    """Raises ConfigError for an id that is not valid as a name of znodes and metrics."""
    if value is not None and not _ID.fullmatch(value):
        raise ConfigError(
            f"{key} has value {value} which is illegal: it contains a character other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
