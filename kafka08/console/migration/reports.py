"""Reports of brokers on the versions that their clients speak: the page ``/clients`` of each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kafka08.console.brokers.http_pages import BrokerPages
from kafka08.console.cluster_state import BrokerView
from kafka08.errors import KafkaError
from kafka08.runtime import Runtime, Tasks

PRODUCE, FETCH, OFFSET_COMMIT, JOIN_GROUP = "Produce", "Fetch", "OffsetCommit", "JoinGroup"
PATH: Final = "/clients"


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
    """Both by broker. ``errors``: why it did not say who speaks to it."""

    brokers: Mapping[int, BrokerReport] = {}
    errors: Mapping[int, str] = {}


def read(brokers: Iterable[BrokerView], pages: BrokerPages, runtime: Runtime) -> Reports:
    """All are asked at the same time."""
    found: dict[int, BrokerReport] = {}
    errors: dict[int, str] = {}

    def ask(broker: BrokerView) -> None:
        try:
            report = decode(pages.read(broker, PATH))
            if report.broker_id != broker.id:
                raise KafkaError(f"the page at its address is of broker {report.broker_id}")
            found[broker.id] = report
        except (KafkaError, ValueError) as error:
            errors[broker.id] = str(error)

    tasks = Tasks(runtime)
    for broker in brokers:
        tasks.begin(f"console-clients-{broker.id}", ask, broker)
    tasks.join()
    return Reports(dict(sorted(found.items())), dict(sorted(errors.items())))


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
