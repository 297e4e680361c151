"""Access rules in ZooKeeper: reads them, and changes those of one resource at a time.

A change is a conditional write, repeated when another writer was faster, and a notice by which
brokers learn of it. Resources of unknown types are passed over with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from kafka08.errors import AdminOperationError
from kafka08.security import acl_nodes
from kafka08.security.acls import Acl, Resource
from zk.client import ZkClient
from zk.errors import BadVersionError, NodeExistsError, NoNodeError
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.security.authorizer.AclAuthorizer")

_TRIES = 10
_RETRY_SECONDS = 0.1
_NEW = -1


class Stored(NamedTuple):
    """The rules of a resource, and the version of its node; -1 if there is none."""

    acls: tuple[Acl, ...]
    version: int = _NEW


class AclStore:
    """``sleep``: waits some seconds between the tries of a write."""

    def __init__(self, zk: ZkClient, sleep: Callable[[float], object]) -> None:
        self._zk = zk
        self._sleep = sleep
        self._passed_over: set[str] = set()

    def ensure_paths(self) -> None:
        """Create the nodes under which everything is."""
        self._zk.ensure_path(*acl_nodes.ROOTS.values(), *acl_nodes.CHANGES.values())

    def resources(self) -> Iterator[Resource]:
        """The resources that have rules."""
        for pattern, root in acl_nodes.ROOTS.items():
            for name in sorted(self._zk.children_if_exists(root)):
                kind = acl_nodes.resource_type(name)
                if kind is None or kind.label != name:
                    self._pass_over(f"{root}/{name}")
                    continue
                for each in sorted(self._zk.children_if_exists(f"{root}/{name}")):
                    yield Resource(kind, each, pattern)

    def _pass_over(self, path: str) -> None:
        if path not in self._passed_over:
            self._passed_over.add(path)
            logger.warning("%s is not a type of resources that is known here; ignored", path)

    def read(self, resource: Resource) -> Stored:
        """Raises MalformedNodeError."""
        path = acl_nodes.resource_path(resource)
        found = self._zk.get_if_exists(path)
        if found is None:
            return Stored(())
        return Stored(acl_nodes.decode_acls(path, found[0]), found[1].version)

    def add(self, resource: Resource, acls: Iterable[Acl]) -> None:
        """Add rules that the resource does not have yet. Raises AdminOperationError,
        MalformedNodeError."""
        acl_nodes.check_name(resource.name)
        added = list(acls)
        self._change(resource, lambda present: tuple(dict.fromkeys([*present, *added])))

    def remove(self, resource: Resource, acls: Collection[Acl]) -> None:
        """Remove some rules of a resource. Raises AdminOperationError, MalformedNodeError."""
        self._change(resource, lambda present: tuple(a for a in present if a not in acls))

    def remove_all(self, resource: Resource) -> None:
        """Remove all rules of a resource, also those that cannot be read."""
        if self._zk.delete_if_exists(acl_nodes.resource_path(resource)):
            self._notify(resource)

    def _change(
        self, resource: Resource, changed: Callable[[tuple[Acl, ...]], tuple[Acl, ...]]
    ) -> None:
        for number in range(_TRIES):
            if number:
                self._sleep(_RETRY_SECONDS)
            stored = self.read(resource)
            acls = changed(stored.acls)
            if acls == stored.acls:
                return
            if self._write(resource, acls, stored.version):
                self._notify(resource)
                return
        raise AdminOperationError(
            f"The access rules of {resource} were changed by others {_TRIES} times in a row"
        )

    def _write(self, resource: Resource, acls: Collection[Acl], version: int) -> bool:
        """Whether the node was still of that version."""
        path = acl_nodes.resource_path(resource)
        data = acl_nodes.encode_acls(acls)
        try:
            if not acls:
                self._zk.delete(path, version)
            elif version == _NEW:
                self._zk.create(path, data, makepath=True)
            else:
                self._zk.set(path, data, version)
        except (BadVersionError, NodeExistsError, NoNodeError):
            return False
        return True

    def _notify(self, resource: Resource) -> None:
        prefix = acl_nodes.change_path_prefix(resource.pattern)
        data = acl_nodes.encode_change(resource)
        self._zk.create(prefix, data, sequence=True, makepath=True)


def read_or_refuse(store: AclStore, resource: Resource) -> tuple[Acl, ...] | MalformedNodeError:
    """The rules of a resource, or why they cannot be read."""
    try:
        return store.read(resource).acls
    except MalformedNodeError as error:
        return error
