"""Several requests on their way to ZooKeeper at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kazoo.exceptions import NoNodeError


class Request(Protocol):
    """A request that kazoo has sent."""

    def ready(self) -> bool: ...
    def wait(self, timeout: float) -> object: ...
    def get(self) -> Any: ...


class Together:
    """The requests of ``issue`` for all ``paths``, as one with kazoo's methods. Its result is the
    list of theirs; that of a node which does not exist is None."""

    def __init__(self, issue: Callable[[str], Request], paths: Sequence[str]) -> None:
        self._results = [issue(path) for path in paths]

    def ready(self) -> bool:
        return all(each.ready() for each in self._results)

    def wait(self, timeout: float) -> None:
        """Until one more of them is ready; may return earlier."""
        for each in self._results:
            if not each.ready():
                each.wait(timeout)
                return

    def get(self) -> list[Any]:
        """To be called when all are ready. Raises the first error of another kind."""
        return [_result(each) for each in self._results]


def _result(request: Request) -> Any:
    try:
        return request.get()
    except NoNodeError:
        return None
