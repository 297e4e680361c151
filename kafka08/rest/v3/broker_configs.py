"""Settings of one broker and of all brokers by API v3.

The broker is asked itself, by requests of later releases. Which settings can be changed while it
runs it decides; its refusal has status 400. Brokers of 0.8.2.2 do not serve such requests: 400.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka08.client.admin import AdminClient
from kafka08.protocol.admin_schemas import BROKER_RESOURCE, ConfigEntry
from kafka08.rest.calls import Call, RestAnswer, Route, Row
from kafka08.rest.cluster import Cluster
from kafka08.rest.errors import plain
from kafka08.rest.v3.admin import CLUSTER, AdminV3, HandlerV3, Links
from kafka08.rest.v3.configs import read_changes, read_value, shown_entry
from kafka08.security.users import ADMIN

_BROKERS = f"{CLUSTER}/brokers"
_LIST = "KafkaBrokerConfigList"
_ALL = ""


class BrokerConfigsV3:
    """``topics``: the handlers that know the cluster's id."""

    def __init__(self, cluster: Cluster, topics: AdminV3) -> None:
        self._cluster = cluster
        self._topics = topics

    def routes(self) -> list[Route]:
        listing = self._topics.listing
        return [
            listing(f"{_BROKERS}/-/configs", "brokers.configs.list", _LIST, self._of_each),
            *self._settings(f"{_BROKERS}/<int:broker>/configs", "broker.configs", _LIST),
            *self._settings(
                f"{CLUSTER}/broker-configs", "cluster.configs", "KafkaClusterConfigList"
            ),
        ]

    def _settings(self, rule: str, name: str, kind: str) -> list[Route]:
        """The routes of the settings at ``rule``: of all brokers if it does not name one."""

        def change(method: str, rule: str, did: str, handler: HandlerV3) -> Route:
            return self._topics.route(method, rule, f"{name}.{did}", handler, ADMIN)

        one = f"{rule}/<name>"
        return [
            self._topics.listing(rule, f"{name}.list", kind, self._list),
            self._topics.get(one, f"{name}.get", self._one),
            change("PUT", one, "update", self._set),
            change("DELETE", one, "reset", self._reset),
            change("POST", f"{rule}:alter", "alter", self._alter),
        ]

    def _broker(self, call: Call) -> str:
        """The id of the broker that the path names, "" for all. Raises RestError 404."""
        number = call.args.get("broker")
        if number is None:
            return _ALL
        if number not in self._cluster.broker_ids():
            raise plain(404, f"Broker {number} cannot be found.")
        return str(number)

    # --- reading

    def _of_each(self, call: Call, links: Links) -> Iterator[Row]:
        with self._cluster.admin() as admin:
            for broker in self._cluster.brokers():
                name = str(broker.id)
                for entry in admin.settings(BROKER_RESOURCE, name):
                    yield _shown(links, name, entry)

    def _list(self, call: Call, links: Links) -> list[Row]:
        broker = self._broker(call)
        with self._cluster.admin() as admin:
            return [_shown(links, broker, each) for each in admin.settings(BROKER_RESOURCE, broker)]

    def _one(self, call: Call, links: Links) -> Row:
        broker = self._broker(call)
        with self._cluster.admin() as admin:
            return _shown(links, broker, _found(admin, broker, call.args["name"]))

    # --- changing

    def _set(self, call: Call, links: Links) -> RestAnswer:
        return self._change_one(call, read_value(call))

    def _reset(self, call: Call, links: Links) -> RestAnswer:
        return self._change_one(call, None)

    def _change_one(self, call: Call, value: str | None) -> RestAnswer:
        broker, name = self._broker(call), call.args["name"]
        with self._cluster.admin() as admin:
            if broker != _ALL:  # of all brokers those are shown alone that are set
                _found(admin, broker, name)
            admin.change_settings(BROKER_RESOURCE, broker, {name: value})
        return RestAnswer(status=204)

    def _alter(self, call: Call, links: Links) -> RestAnswer:
        broker = self._broker(call)
        changes, validate_only = read_changes(call)
        with self._cluster.admin() as admin:
            admin.change_settings(BROKER_RESOURCE, broker, changes, validate_only=validate_only)
        return RestAnswer(status=204)


def _found(admin: AdminClient, broker: str, name: str) -> ConfigEntry:
    """Raises RestError 404."""
    for entry in admin.settings(BROKER_RESOURCE, broker):
        if entry.name == name:
            return entry
    of = f"broker {broker}" if broker else "all brokers"
    raise plain(404, f"Config {name} cannot be found for {of}.")


def _shown(links: Links, broker: str, entry: ConfigEntry) -> Row:
    shown = shown_entry(entry)
    if broker == _ALL:
        values = {"config_type": "BROKER", **shown}
        return links.entry("KafkaClusterConfig", ("broker-config", entry.name), values)
    words = ("broker", broker, "config", entry.name)
    return links.entry("KafkaBrokerConfig", words, {"broker_id": int(broker), **shown})
