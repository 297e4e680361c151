"""Reports of brokers on their clients, for the tests of the migration page."""

from __future__ import annotations

import json

from kafka08.console.migration.reports import BrokerReport, KnownClient, Use

OLD = KnownClient("shop", "10.0.0.3", "User:ANONYMOUS", False)
HELD = KnownClient("held", "10.0.0.4", "User:ann", True)
NEW = KnownClient("new", "10.0.0.5", "User:ANONYMOUS", True, "librdkafka 2.5")


def produce(client: KnownClient, version: int, topic: str, format_: int | None = 0) -> Use:
    return Use(client, "Produce", version, topic, None, format_, 1_000)


def fetch(client: KnownClient, version: int, topic: str, last_ms: int = 2_000) -> Use:
    return Use(client, "Fetch", version, topic, None, None, last_ms)


def of_group(client: KnownClient, api: str, version: int, group: str) -> Use:
    return Use(client, api, version, None, group, None, 3_000)


def report(*uses: Use, broker_id: int = 1, **others: object) -> BrokerReport:
    return BrokerReport(broker_id, True, "3.0", 1_000, 0, uses)._replace(**others)


def page(found: BrokerReport) -> bytes:
    """As a broker encodes it."""
    heard = [
        {
            "client_id": use.client.client_id or None,
            "host": use.client.host,
            "principal": use.client.principal,
            "asks_versions": use.client.asks_versions,
            "software": use.client.software.partition(" ")[0] or None,
            "software_version": use.client.software.partition(" ")[2] or None,
            "api": use.api,
            "version": use.version,
            "topic": use.topic,
            "group": use.group,
            "format": use.format,
            "last_ms": use.last_ms,
        }
        for use in found.uses
    ]
    about = {
        "broker_id": found.broker_id,
        "api.versions.enable": found.serves_later,
        "log.message.format.version": found.format_version,
        "since_ms": found.since_ms,
        "forgotten": found.forgotten,
        "heard": heard,
    }
    return json.dumps(about).encode()
