"""The children of a node are read at the start, after each change, and again after a failure."""

from __future__ import annotations

import logging

import pytest

from kafka08.server.cluster_view.watched_children import WatchedChildren
from tests.server.support import Rig

PATH = "/watched"
logger = logging.getLogger("watched")


def test_each_change_is_read(rig: Rig) -> None:
    found: list[list[str]] = []
    watched = _watched(rig, found)
    watched.start()
    rig.zk.create_or_set(f"{PATH}/a", b"")
    watched.step()
    rig.zk.create_or_set(f"{PATH}/b", b"")
    watched.step()
    assert found == [[], ["a"], ["a", "b"]]


def test_a_read_that_fails_is_repeated(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    found: list[list[str]] = []
    watched = _watched(rig, found)
    rig.zk.create_or_set(f"{PATH}/a", b"")
    watched.start()
    watched.session_expired()
    rig.zk.down = True
    watched.step()
    assert found == [["a"]]
    assert caplog.messages[-1].startswith("Children not read: ")
    rig.zk.down = False
    watched.step()
    assert found == [["a"], ["a"]]


def test_nothing_is_read_for_a_stop(rig: Rig) -> None:
    found: list[list[str]] = []
    watched = _watched(rig, found)
    watched.start()
    watched.stop()
    watched.step()
    assert found == [[]]


def _watched(rig: Rig, found: list[list[str]]) -> WatchedChildren:
    return WatchedChildren(
        rig.runtime,
        rig.zk,  # type: ignore[arg-type]
        PATH,
        "watched",
        lambda names: found.append(sorted(names)),
        logger,
        "Children not read",
    )
