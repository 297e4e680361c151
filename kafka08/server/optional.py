"""The parts of a broker that are loaded only if a setting asks for them (docs/adr/0054).

Their modules, and the libraries that only they use, take memory and time of a start that most
brokers have no use for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from kafka08.common import SASL
from kafka08.log.disk import DiskFailure
from kafka08.metrics.registry import Registry
from kafka08.network.server import Login
from kafka08.runtime import Runtime, SocketConnector
from kafka08.server.monitoring.health import Health
from kafka08.server.requests.spoken import SpokenVersions
from kafka08.settings.broker import BrokerConfig
from zk.client import ZkClient

if TYPE_CHECKING:
    from kafka08.log.cleaning.cleaner import LogCleaner, ReachOf
    from kafka08.server.access.authorization import Authorization
    from kafka08.server.access.logins import LoginSettings
    from kafka08.server.storage.cleaner_tasks import CleanerTasks
    from kafka08.server.unit.keeper import Keeper
    from kafka08.settings.unit import UnitMember


class NoLogins:
    """Has the methods of ``LoginSettings`` that a broker calls."""

    def connector(self, connector: SocketConnector) -> SocketConnector:
        return connector

    def credentials(self, *parts: object) -> None:
        return None

    def by_listener(self, *parts: object) -> dict[str, Login]:
        return {}


def logins_of(config: BrokerConfig) -> LoginSettings | NoLogins:
    """Raises ConfigError."""
    if not any(each.protocol in SASL for each in config.resolved_listeners().bound):
        return NoLogins()
    made: LoginSettings = import_module("kafka08.server.access.logins").LoginSettings(config)
    return made


def authorization_of(config: BrokerConfig, runtime: Runtime, zk: ZkClient) -> Authorization | None:
    if not config.authorizer_class_name:
        return None
    module = import_module("kafka08.server.access.authorization")
    made: Authorization = module.Authorization(config, runtime, zk)
    return made


def cleaner_tasks(
    config: BrokerConfig,
    runtime: Runtime,
    cleaner: LogCleaner | None,
    reach_of: ReachOf,
    disk_failed: Callable[[Iterable[DiskFailure]], None],
) -> CleanerTasks | None:
    if cleaner is None:
        return None
    module = import_module("kafka08.server.storage.cleaner_tasks")
    made: CleanerTasks = module.CleanerTasks(config, runtime, cleaner, reach_of, disk_failed)
    return made


def start_metric_outputs(
    config: BrokerConfig,
    runtime: Runtime,
    registry: Registry,
    health: Health,
    spoken: SpokenVersions,
) -> Iterator[Callable[[], object]]:
    """Yields the function that stops each output, once it has started."""
    module = import_module("kafka08.server.monitoring.metric_outputs")
    yield from module.start(config, runtime, registry, health, spoken)


def run_unit(path: str, base: BrokerConfig, members: Sequence[UnitMember]) -> int:
    """Run the brokers of the file ``path``, whose settings are ``base``; the exit status."""
    status: int = import_module("kafka08.server.unit.supervisor").run(path, base, members)
    return status


def start_unit_pages(
    base: BrokerConfig, runtime: Runtime, keepers: Sequence[Keeper]
) -> Iterator[Callable[[], object]]:
    """Yields the function that stops the pages of a unit, once they are served."""
    if base.http_port > 0:
        yield from import_module("kafka08.server.unit.pages").start(base, runtime, keepers)
