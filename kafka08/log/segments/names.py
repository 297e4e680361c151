"""The names of a segment's files: its base offset in 20 digits, and a suffix for each kind."""

from __future__ import annotations

import os
from collections.abc import Iterable

from kafka08.log.directory import unlink_if_there

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"  # of the states of producers
SWAP_SUFFIX = ".swap"
DELETED_SUFFIX = ".deleted"
REBUILT_SUFFIX = ".rebuilt"
REBUILT_INDEX_SUFFIX = ".rebuilt-index"
SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX)


def mark_deleted(paths: Iterable[str]) -> list[str]:
    """Give these files the suffix .deleted; returns the new paths of those there were."""
    renamed = []
    for path in paths:
        try:
            os.replace(path, path + DELETED_SUFFIX)
        except FileNotFoundError:
            continue
        renamed.append(path + DELETED_SUFFIX)
    return renamed


def rebuilt_paths(log_path: str) -> tuple[str, str]:
    """The files of a segment's rebuilt entries: entries and index."""
    stem = log_path[: -len(LOG_SUFFIX)]
    return stem + REBUILT_SUFFIX, stem + REBUILT_INDEX_SUFFIX


def remove_rebuilt(log_path: str) -> None:
    """Remove the files of a segment's rebuilt entries, if there are any."""
    for path in reversed(rebuilt_paths(log_path)):  # without an index the other is ignored
        if os.path.exists(path):  # mostly not
            unlink_if_there(path)  # another thread may remove it first
