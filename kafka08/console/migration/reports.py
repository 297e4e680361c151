"""Reports of brokers on the versions that their clients speak: the page ``/clients`` of each."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from kafka08.runtime import Runtime

PRODUCE, FETCH, OFFSET_COMMIT, JOIN_GROUP = "Produce", "Fetch", "OffsetCommit", "JoinGroup"
_MOST_BYTES: Final = 16 << 20
_REASONS: Final = {
    404: "it has no page /clients: its release is older than this console's",
    421: "it does not take this name: add it to its http.allowed.hosts",
}


class KnownClient(NamedTuple):
    """``asks_versions``: it has asked for API versions, as programs since 0.10 do. ``software``:
    its program and version, empty if it did not name them."""

    client_id: str
    host: str
    principal: str
    asks_versions: bool
    software: str = ""


class Use(NamedTuple):
    """A topic or a group that a client used by a version of an API. ``format``: of the messages
    that it produced, None if that is unknown. ``last_ms``: the last time."""

    client: KnownClient
    api: str
    version: int
    topic: str | None
    group: str | None
    format: int | None
    last_ms: int


class BrokerReport(NamedTuple):
    """``serves_later``: api.versions.enable. ``format_version``: log.message.format.version.
    ``since_ms``: when it began to listen. ``forgotten``: uses that it had no room for."""

    broker_id: int
    serves_later: bool
    format_version: str
    since_ms: int
    forgotten: int
    uses: tuple[Use, ...]


class Reports(NamedTuple):
    """``brokers`` by id. ``errors``: by address, of those that did not answer."""

    brokers: Mapping[int, BrokerReport] = {}
    errors: Mapping[str, str] = {}


FetchPage = Callable[[str, float], bytes]
"""The body of ``/clients`` at an address, within so many seconds. Raises OSError."""


def read(addresses: Iterable[str], fetch: FetchPage, runtime: Runtime, timeout_s: float) -> Reports:
    """All are asked at the same time."""
    brokers: dict[int, BrokerReport] = {}
    errors: dict[str, str] = {}

    def ask(address: str) -> None:
        try:
            found = decode(runtime.blocking(fetch, address, timeout_s))
            brokers[found.broker_id] = found
        except (OSError, ValueError) as error:
            errors[address] = str(error)

    every = dict.fromkeys(addresses)
    tasks = [runtime.spawn(f"clients of {each}", partial(ask, each)) for each in every]
    for task in tasks:
        task.join()
    order = list(every)
    return Reports(
        dict(sorted(brokers.items())),
        {each: errors[each] for each in order if each in errors},
    )


def fetch_page(address: str, timeout_s: float) -> bytes:
    """Blocks. ``address``: host:port."""
    connection = http.client.HTTPConnection(address, timeout=timeout_s)
    try:
        connection.request("GET", "/clients")
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            text = _REASONS.get(answer.status, f"it answered {answer.status} {answer.reason}")
            raise ConnectionError(text)
        body = answer.read(_MOST_BYTES + 1)
    except http.client.HTTPException as error:
        raise ConnectionError(f"it does not answer in HTTP: {error!r}") from None
    finally:
        connection.close()
    if len(body) > _MOST_BYTES:
        raise ConnectionError(f"its answer is longer than {_MOST_BYTES} bytes")
    return body


def decode(body: bytes) -> BrokerReport:
    """Raises ValueError for what is not such a page."""
    try:
        found = json.loads(body)
        return BrokerReport(
            int(found["broker_id"]),
            bool(found["api.versions.enable"]),
            str(found["log.message.format.version"]),
            int(found["since_ms"]),
            int(found["forgotten"]),
            tuple(map(_use, found["heard"])),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ValueError("its answer is not a page of clients") from None


def _use(found: Mapping[str, object]) -> Use:
    software = " ".join(
        str(found[name]) for name in ("software", "software_version") if found[name] is not None
    )
    client = KnownClient(
        _text(found["client_id"]) or "",
        str(found["host"]),
        str(found["principal"]),
        bool(found["asks_versions"]),
        software,
    )
    message_format = found["format"]
    return Use(
        client,
        str(found["api"]),
        _integer(found["version"]),
        _text(found["topic"]),
        _text(found["group"]),
        None if message_format is None else _integer(message_format),
        _integer(found["last_ms"]),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _integer(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value
