"""A member of a group as a process of a client's program."""

from __future__ import annotations

import time
from collections.abc import Callable

from integration.later import programs
from integration.later.child import Child


class MemberProcess(Child):
    """``close`` or ``kill`` it."""

    def words(self, first: str) -> list[list[str]]:
        """The lines that begin with a word, without it."""
        return [line.split()[1:] for line in list(self.lines) if line.split()[:1] == [first]]

    @property
    def assigned(self) -> set[int]:
        """The partitions of the newest assignment."""
        found = self.words("assigned")
        return {int(each) for each in found[-1][0].split(",")} if found and found[-1] else set()

    @property
    def messages(self) -> list[tuple[int, int]]:
        """(partition, offset) as they came."""
        return [(int(partition), int(offset)) for partition, offset in self.words("message")]

    def close(self) -> None:
        """End its input, and wait until it has left the group."""
        super().close()
        assert self.lines[-1:] == ["closed"], self.told


class Member(MemberProcess):
    """Of one of ``programs.CLIENTS``."""

    def __init__(self, client: str, address: str, group: str, topic: str, *config: str) -> None:
        command = programs.command(client, "member", address, group, topic, *config)
        super().__init__(client, command)


def await_members(
    what: str, timeout: float, condition: Callable[[], object], *members: Child
) -> None:
    """Until ``condition()`` is true; what the members said is in the error."""
    deadline = time.monotonic() + timeout
    while not condition():
        told = "\n\n".join(member.told for member in members)
        assert time.monotonic() < deadline, f"{what}: not within {timeout} s\n{told}"
        time.sleep(0.05)
