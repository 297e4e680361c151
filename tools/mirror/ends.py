"""Whether messages keep their timestamps and headers on their way through a mirror.

Both ends must serve the requests of later releases. The settings ``api.versions.request`` of their
files decide; an end whose file does not have it is asked. A broker that closes the connection when
it is asked, as one of 0.8 does, is asked again some times, because a broker that is stopping closes
too. An end of which no broker can be reached is waited for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from kafka08.client.cluster import Endpoint, endpoints_of, parse_broker_list
from kafka08.client.security import ClientSecurity, runtime_for
from kafka08.common import READ_COMMITTED
from kafka08.consumer.config import ConsumerConfig
from kafka08.consumer.group import zookeeper_session
from kafka08.errors import ConfigError
from kafka08.network.channel import Channel
from kafka08.protocol.negotiation import NoApiVersionsError
from kafka08.runtime import ThreadRuntime
from zk import registry

logger = logging.getLogger("kafka.tools.MirrorMaker$")

SETTING = "api.versions.request"
ISOLATION = "isolation.level"
TRIES = 3
PAUSE_S = 1.0
_TIMEOUT_MS = 10_000

Ask = Callable[[str, int], None]
"""Returns if the broker serves the requests. Raises NoApiVersionsError, OSError."""


@dataclass
class End:
    """A cluster. ``settings`` are those of its file, which ``settle`` completes. ``brokers`` and
    ``ask`` are used if the file does not decide. ``is_later``: its library always asks."""

    name: str
    settings: dict[str, str]
    brokers: Callable[[], Sequence[Endpoint]]
    ask: Ask
    is_later: bool = False


def settle(target: End, sources: Sequence[End], pause: Callable[[float], object]) -> None:
    """Set ``api.versions.request`` of each end. Raises ConfigError for a source that is to be read
    by transactions, and whose brokers cannot tell which messages are committed."""
    able = [_is_able(source, pause) for source in sources]
    for source, can in zip(sources, able, strict=True):
        if not can and source.settings.get(ISOLATION) == READ_COMMITTED:
            raise ConfigError(
                f"{ISOLATION} of {source.name} has value {READ_COMMITTED}, but its brokers do not "
                "serve the requests of later releases"
            )
    wanted = any(able) and _is_able(target, pause)
    for source, can in zip(sources, able, strict=True):
        # Of a target that does not take them, ``Lost`` says which message is the first.
        _set(source, can)
        if wanted and not can:
            logger.warning(
                "Messages of %s are copied without timestamps and headers: its brokers do not "
                "serve the requests of later releases, or %s is false",
                *(source.name, SETTING),
            )
    _set(target, wanted)


def _set(end: End, value: bool) -> None:
    if not end.is_later:
        end.settings.setdefault(SETTING, "true" if value else "false")


def _is_able(end: End, pause: Callable[[float], object]) -> bool:
    if end.is_later:
        return True
    given = end.settings.get(SETTING)
    if given is not None:
        return given.strip().lower() == "true"
    is_waiting = False
    while True:
        found = [_answer(end, host, port, pause) for host, port in end.brokers()]
        if False in found:
            return False
        if True in found:
            return True
        if not is_waiting:
            logger.warning("No broker of %s can be reached; waiting for one", end.name)
            is_waiting = True
        pause(PAUSE_S)


def _answer(end: End, host: str, port: int, pause: Callable[[float], object]) -> bool | None:
    """None: the broker cannot be reached."""
    for number in range(TRIES):
        if number:
            pause(PAUSE_S)
        try:
            end.ask(host, port)
        except NoApiVersionsError as error:
            logger.info("%s", error)
        except OSError as error:
            logger.debug("%s:%d cannot be reached: %s", host, port, error)
            return None
        else:
            return True
    return False


def source(name: str, settings: dict[str, str], *, is_later: bool) -> End:
    """The cluster of a consumer's file."""

    def brokers() -> list[Endpoint]:
        config = ConsumerConfig.from_properties(settings)
        with closing(zookeeper_session(config, ThreadRuntime())) as client:
            return endpoints_of(registry.live_brokers(client, config.security_protocol.upper()))

    return End(name, settings, brokers, _asker(settings), is_later)


def target(name: str, settings: dict[str, str], *, is_later: bool) -> End:
    """The cluster of a producer's file, of the old or the new producer."""

    def brokers() -> list[Endpoint]:
        listed = settings.get("bootstrap.servers", settings.get("metadata.broker.list", ""))
        return parse_broker_list(listed)

    return End(name, settings, brokers, _asker(settings), is_later)


def _asker(settings: Mapping[str, str]) -> Ask:
    def ask(host: str, port: int) -> None:
        runtime = runtime_for(ClientSecurity.from_properties(settings))
        with Channel(
            host, port, timeout_ms=_TIMEOUT_MS, runtime=runtime, api_versions=True
        ) as channel:
            channel.connect()

    return ask
