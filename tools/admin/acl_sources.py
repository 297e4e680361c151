"""Where kafka-acls reads and writes rules: in ZooKeeper, or through a broker."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from kafka08.client import acls as remote
from kafka08.client.admin import AdminClient
from kafka08.security.acl_filters import ALL_ACLS, PatternFilter, ResourceFilter, RuleFilter
from kafka08.security.acl_store import AclStore, read_or_refuse
from kafka08.security.acls import Acl, Resource
from zk.znodes import MalformedNodeError

Found = tuple[Resource, Sequence[Acl] | MalformedNodeError]
"""A resource, and its rules or why they cannot be read."""

_EVERYTHING = ResourceFilter(None, None, PatternFilter.ANY)


class ZooKeeperAcls(NamedTuple):
    store: AclStore

    def listed(self, filters: Collection[ResourceFilter]) -> Iterator[Found]:
        """The resources that one of the filters takes, each once; all without filters."""
        for resource in list(self.store.resources()):
            if not filters or any(each.takes(resource) for each in filters):
                yield resource, read_or_refuse(self.store, resource)

    def add(self, resource: Resource, acls: Sequence[Acl]) -> None:
        self.store.add(resource, acls)

    def remove(self, resources: ResourceFilter, acls: Sequence[Acl]) -> None:
        """Remove these rules of what the filter takes; all rules if there are none."""
        for resource in list(filter(resources.takes, self.store.resources())):
            if acls:
                self.store.remove(resource, acls)
            else:
                self.store.remove_all(resource)


class RemoteAcls(NamedTuple):
    """The same over a broker."""

    client: AdminClient

    def listed(self, filters: Collection[ResourceFilter]) -> Iterable[Found]:
        found: dict[Resource, Sequence[Acl]] = {}
        for each in filters or (_EVERYTHING,):
            found.update(remote.describe(self.client.call, each, ALL_ACLS))
        return found.items()

    def add(self, resource: Resource, acls: Sequence[Acl]) -> None:
        remote.create(self.client.call, resource, acls)

    def remove(self, resources: ResourceFilter, acls: Sequence[Acl]) -> None:
        exact = [RuleFilter(a.principal, a.host, a.operation, a.permission) for a in acls]
        remote.delete(self.client.call, [(resources, each) for each in exact or [ALL_ACLS]])


AclSource = ZooKeeperAcls | RemoteAcls
