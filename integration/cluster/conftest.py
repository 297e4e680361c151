"""Clusters by kind, one per module and kind, put back into order before every test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration import original
from integration.cluster.cluster import Cluster
from integration.cluster.containers import Containers
from integration.cluster.hosts import Hosts, Loopback, Namespaces

ORIGINAL = pytest.mark.original
PURE = [pytest.param("ours"), pytest.param("original", marks=ORIGINAL)]
MIXED = [
    pytest.param("mixed-original-leads", marks=ORIGINAL),
    pytest.param("mixed-ours-leads", marks=ORIGINAL),
]


def chosen_hosts() -> Hosts:
    """The kind of hosts in KAFKA08_TEST_HOSTS, else namespaces if they work, else loopback."""
    wanted = os.environ.get("KAFKA08_TEST_HOSTS", "")
    if wanted == "containers":
        return Containers()
    reason = Namespaces.missing() if wanted in ("", "namespaces") else "not wanted"
    if not reason:
        return Namespaces()
    if wanted == "namespaces":
        raise RuntimeError(reason)
    found = Loopback()
    found.no_cuts += f" ({reason})"
    return found


@pytest.fixture(scope="session")
def hosts() -> Iterator[Hosts]:
    found = chosen_hosts()
    yield found
    found.close()


@pytest.fixture
def cuts(hosts: Hosts) -> None:
    """For tests that cut cables."""
    if hosts.no_cuts:
        pytest.skip(hosts.no_cuts)


class Clusters:
    """Running clusters by what they are made of; a failed test throws its cluster away."""

    def __init__(self, hosts: Hosts, directory: Callable[[], Path]) -> None:
        self._hosts = hosts
        self._directory = directory
        self._running: dict[tuple[Any, ...], Cluster] = {}

    def get(self, kind: str, *, controller: int = 2, **options: Any) -> Cluster:
        """A cluster of this kind in good order, the named broker its controller."""
        if kind != "ours" and not original.available():
            pytest.skip(original.missing())
        key = (kind, *sorted((name, repr(value)) for name, value in options.items()))
        cluster = self._running.get(key)
        if cluster is not None and (kind == "ours" or cluster.controller() == controller):
            cluster.restore(controller)
            return cluster
        # At most one at a time: memory and cores are few.
        self.discard()
        cluster = self._running[key] = Cluster(self._hosts, self._directory(), kind, **options)
        return cluster.start(controller)

    def discard(self) -> None:
        while self._running:
            self._running.popitem()[1].stop()


@pytest.fixture(scope="module")
def _clusters(hosts: Hosts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    found = Clusters(hosts, lambda: tmp_path_factory.mktemp("cluster"))
    yield found
    with hosts.inside():
        found.discard()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    if report.when == "call":
        item.stash[_failed] = report.failed


_failed = pytest.StashKey[bool]()


@pytest.fixture
def clusters(
    request: pytest.FixtureRequest, hosts: Hosts, _clusters: Clusters
) -> Iterator[Clusters]:
    with hosts.inside():
        yield _clusters
        if request.node.stash.get(_failed, True):
            _clusters.discard()
        else:
            hosts.heal()
