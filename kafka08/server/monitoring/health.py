"""Whether a broker is alive and ready, and the state that it is in (kafka.server.BrokerState)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

STARTING, RECOVERING, RUNNING, CONTROLLER, PENDING_SHUTDOWN, SHUTTING_DOWN = 1, 2, 3, 4, 6, 7


class Health:
    """``enter`` is called with each new state. ``add_check``: a function that returns why the
    broker is not ready, or an empty text; asked while it runs. ``add_warning``: the same for what
    an operator should know of a broker that is. ``shows``: more to tell, as JSON can hold it."""

    def __init__(self) -> None:
        self._state = STARTING
        self._checks: list[Callable[[], str]] = []
        self._warnings: list[Callable[[], str]] = []
        self._details: dict[str, Callable[[], object]] = {}
        self._is_recovering: Callable[[], bool] = bool
        self._is_controller: Callable[[], bool] = bool

    def enter(self, state: int) -> None:
        self._state = state

    def add_check(self, check: Callable[[], str]) -> None:
        self._checks.append(check)

    def add_warning(self, warning: Callable[[], str]) -> None:
        self._warnings.append(warning)

    def shows(self, name: str, detail: Callable[[], object]) -> None:
        self._details[name] = detail

    def loads(self, is_recovering: Callable[[], bool]) -> None:
        """Logs are being loaded from now on; asked until the broker runs."""
        self._is_recovering = is_recovering

    def runs(self, is_controller: Callable[[], bool]) -> None:
        """The broker is registered."""
        self._is_controller = is_controller
        self._state = RUNNING

    @property
    def state(self) -> int:
        if self._state == STARTING and self._is_recovering():
            return RECOVERING
        if self._state == RUNNING and self._is_controller():
            return CONTROLLER
        return self._state

    def reasons(self) -> list[str]:
        """Why the broker is not ready; empty if it is."""
        state = self.state
        if state not in (RUNNING, CONTROLLER):
            return [f"the broker is {_DOING[state]}"]
        return _said(self._checks)

    def details(self) -> dict[str, object]:
        """``warnings`` if there are any, and all that is to be shown."""
        warnings = _said(self._warnings)
        found: dict[str, object] = {"warnings": warnings} if warnings else {}
        return found | {name: detail() for name, detail in self._details.items()}


def _said(texts: Iterable[Callable[[], str]]) -> list[str]:
    return [text for each in texts if (text := each())]


_DOING = {
    STARTING: "starting",
    RECOVERING: "recovering its logs",
    PENDING_SHUTDOWN: "handing its leaderships over",
    SHUTTING_DOWN: "shutting down",
}
