"""The pages of a unit over HTTP: the health of all brokers, and the metrics of all.

The supervisor asks the brokers for their pages, which each serves at a port of its own.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kafka08.metrics.exposition import CONTENT_TYPES, PLAIN
from kafka08.runtime import Runtime, Tasks
from kafka08.server.monitoring.metric_outputs import serve_pages
from kafka08.server.monitoring.pages import OK, UNAVAILABLE, Page, Pages, json_page
from kafka08.server.unit.joined_metrics import joined
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.listeners import EVERY_INTERFACE
from kafka08.settings.unit import UnitMember

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

_TIMEOUT_S = 5.0
_LOOPBACK = "127.0.0.1"


class Answer(NamedTuple):
    """``status`` is 0 if there was no answer; ``body`` says why then. ``is_late``: because it did
    not come in time."""

    status: int
    body: bytes
    is_late: bool = False


class KeptBroker(Protocol):
    """A broker of the unit, as its ``Keeper`` shows it."""

    @property
    def broker_id(self) -> int: ...
    @property
    def member(self) -> UnitMember: ...
    @property
    def is_running(self) -> bool: ...
    @property
    def ended(self) -> str: ...


Ask = Callable[[str, int, str], Answer]
"""Asks a host and port for a page. Waits, and raises nothing."""


def ask(host: str, port: int, path: str) -> Answer:
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path)
        found = connection.getresponse()
        return Answer(found.status, found.read())
    except (OSError, http.client.HTTPException) as error:
        return Answer(0, str(error).encode(), isinstance(error, TimeoutError))
    finally:
        connection.close()


class UnitPages(Pages):
    """A WSGI application. Nothing can be changed by it."""

    def __init__(self, runtime: Runtime, keepers: Sequence[KeptBroker], asks: Ask = ask) -> None:
        super().__init__(
            runtime,
            {
                "/metrics": self._metrics,
                "/health/live": self._live,
                "/health/ready": self._ready,
            },
        )
        self._keepers = keepers
        self._ask = asks

    def _asked(self, path: str) -> dict[int, Answer]:
        """The answers of all brokers, asked at the same time."""
        found: dict[int, Answer] = {}

        def fetch(keeper: KeptBroker) -> None:
            config = keeper.member.config
            host = _LOOPBACK if config.http_host in EVERY_INTERFACE else config.http_host
            found[keeper.broker_id] = self._runtime.blocking(
                self._ask, host, config.http_port, path
            )

        tasks = Tasks(self._runtime)
        for keeper in self._keepers:
            if keeper.is_running:
                tasks.begin(f"page-of-{keeper.broker_id}", fetch, keeper)
            else:
                found[keeper.broker_id] = Answer(0, b"")
        tasks.join()
        return {keeper.broker_id: found[keeper.broker_id] for keeper in self._keepers}

    def _metrics(self, environ: WSGIEnvironment) -> Page:
        texts = {
            broker_id: answer.body if answer.status == 200 else None
            for broker_id, answer in self._asked("/metrics").items()
        }
        return Page(OK, CONTENT_TYPES[PLAIN], self._runtime.blocking(joined, texts))

    def _live(self, environ: WSGIEnvironment) -> Page:
        """A broker that has ended does not count: it is started again. One that hangs does."""
        late = [
            broker_id
            for broker_id, answer in self._asked("/health/live").items()
            if answer.is_late or answer.status not in (0, 200)
        ]
        if late or self.is_late():
            return json_page(UNAVAILABLE, {"status": "late", "brokers": late})
        return json_page(OK, {"status": "live"})

    def _ready(self, environ: WSGIEnvironment) -> Page:
        brokers: dict[str, dict[str, Any]] = {}
        reasons = []
        asked = self._asked("/health/ready")
        for keeper in self._keepers:
            answer = asked[keeper.broker_id]
            said = _said(keeper, answer)
            brokers[str(keeper.broker_id)] = said
            if answer.status != 200:
                why = said.get("reasons") or ["it is not ready"]
                reasons += [f"broker {keeper.broker_id}: {each}" for each in why]
        if reasons:
            found = {"status": "not ready", "reasons": reasons, "brokers": brokers}
            return json_page(UNAVAILABLE, found)
        return json_page(OK, {"status": "ready", "brokers": brokers})


def _said(keeper: KeptBroker, answer: Answer) -> dict[str, Any]:
    """The page of a broker, or the reason for which there is none."""
    if answer.status:
        with suppress(ValueError):
            said: dict[str, Any] = json.loads(answer.body)
            return said
    if not keeper.is_running:
        reason = f"it {keeper.ended}, and is started again" if keeper.ended else "it does not run"
    elif answer.is_late:
        reason = f"it does not answer within {_TIMEOUT_S:.0f} s"
    else:
        reason = "it is starting"
    return {"status": "not ready", "reasons": [reason]}


def start(
    config: BrokerConfig, runtime: Runtime, keepers: Sequence[KeptBroker]
) -> Iterator[Callable[[], object]]:
    """Serve the pages at ``http.port``; yields the function that stops this."""
    yield from serve_pages(config, UnitPages(runtime, keepers))
