"""Whether a broker is alive and ready, and the state that it is in (kafka.server.BrokerState)."""

from __future__ import annotations

from collections.abc import Callable

STARTING, RECOVERING, RUNNING, CONTROLLER, PENDING_SHUTDOWN, SHUTTING_DOWN = 1, 2, 3, 4, 6, 7


class Health:
    """``enter`` is called with each new state. ``add_check``: a function that returns why the
    broker is not ready, or an empty text; asked while it runs."""

    def __init__(self) -> None:
        self._state = STARTING
        self._checks: list[Callable[[], str]] = []
        self._is_recovering: Callable[[], bool] = bool
        self._is_controller: Callable[[], bool] = bool

    def enter(self, state: int) -> None:
        self._state = state

    def add_check(self, check: Callable[[], str]) -> None:
        self._checks.append(check)

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
        return [reason for check in self._checks if (reason := check())]


_DOING = {
    STARTING: "starting",
    RECOVERING: "recovering its logs",
    PENDING_SHUTDOWN: "handing its leaderships over",
    SHUTTING_DOWN: "shutting down",
}
