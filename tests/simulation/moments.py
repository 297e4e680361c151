"""Something that happens again and again, and what is to be done at the nth time from now."""

from __future__ import annotations

from collections.abc import Callable


class Moments:
    """``happened`` is called just before each one; ``after`` plans a call."""

    def __init__(self) -> None:
        self._count = 0
        self._planned: dict[int, list[Callable[[], object]]] = {}

    def happened(self) -> None:
        self._count += 1
        for act in self._planned.pop(self._count, ()):
            act()

    def after(self, count: int, act: Callable[[], object]) -> None:
        """Call ``act`` at the ``count``th moment from now, 1 for the next."""
        self._planned.setdefault(self._count + count, []).append(act)

    def clear(self) -> None:
        """Nothing is planned any more."""
        self._planned.clear()
