"""How much memory coordinated groups take together, and whether there is room for more.

A group counts from its first member until it is forgotten, also while it has no members. Sizes are
estimates in bytes: those that requests have brought, and a fixed share for each object that keeps
them. Pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from sys import getsizeof
from typing import Generic, TypeVar

from kafka08.server.groups.group import Group, JoinRequest, Member

MEMBER_BYTES = 2048
GROUP_BYTES = 1024
STRATEGY_BYTES = 128


Key = TypeVar("Key", bound=Hashable)


class Sizes(Generic[Key]):
    """Sizes in bytes by key. ``total`` is their sum."""

    def __init__(self) -> None:
        self.total = 0
        self._sizes: dict[Key, int] = {}

    def __getitem__(self, key: Key) -> int:
        """0 for an unknown key."""
        return self._sizes.get(key, 0)

    def put(self, key: Key, size: int) -> None:
        """Replace the key's size; a new key is the newest."""
        self.total += size - self[key]
        self._sizes[key] = size

    def drop(self, key: Key) -> None:
        self.total -= self._sizes.pop(key, 0)

    @property
    def oldest(self) -> Key:
        """KeyError if there is none."""
        for key in self._sizes:
            return key
        raise KeyError("no sizes")


class GroupMemory:
    """The memory of groups, of which there may be ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        # By ids of group and member; without a member's id it is that of the group itself.
        self._sizes: Sizes[tuple[str, str | None]] = Sizes()

    @property
    def total(self) -> int:
        return self._sizes.total

    def has_room_to_join(self, group: Group, member_id: str, request: JoinRequest) -> bool:
        """Whether a member, new or known, can join or come again with this request."""
        known = group.members.get(member_id)
        size = _size(request, b"" if known is None else known.assignment)
        group_size = _group_size(group) if not self._sizes[group.id, None] else 0
        return self._has_room(group_size + size - self._sizes[group.id, member_id])

    def has_room_to_assign(self, group: Group, assignments: Mapping[str, bytes]) -> bool:
        """Whether these can replace the assignments of the group's members."""
        members = group.members.values()
        return self._has_room(
            sum(len(assignments.get(each.id, b"")) - len(each.assignment) for each in members)
        )

    def _has_room(self, more: int) -> bool:
        # Groups from the log are loaded whatever they take. Their members may come again.
        return more <= 0 or self._sizes.total + more <= self._max_bytes

    def weigh(self, group: Group, members: Iterable[Member]) -> None:
        """Count a group and these members of it, as they are now."""
        self._sizes.put((group.id, None), _group_size(group))
        for member in members:
            self._sizes.put((group.id, member.id), _size(member, member.assignment))

    def forget_member(self, group: Group, member_id: str) -> None:
        self._sizes.drop((group.id, member_id))

    def forget(self, group: Group) -> None:
        """The group and its members go."""
        for key in (None, *group.members):
            self._sizes.drop((group.id, key))


def _group_size(group: Group) -> int:
    return GROUP_BYTES + getsizeof(group.id)


def _size(joining: JoinRequest | Member, assignment: bytes) -> int:
    # A member's own id is its client's or instance's id and a little more.
    texts = 2 * (getsizeof(joining.client_id) + getsizeof(joining.instance_id or ""))
    strategies = [
        STRATEGY_BYTES + getsizeof(each.name) + len(each.metadata) for each in joining.strategies
    ]
    host = getsizeof(joining.client_host)
    return MEMBER_BYTES + texts + host + sum(strategies) + len(assignment)
