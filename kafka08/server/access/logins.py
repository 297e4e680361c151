"""The logins that the listeners of a broker take, as its settings say.

Puts the mechanisms of ``security``, the credentials of ZooKeeper and the wire's side of a login
(``network.login``) together. Failed logins are answered late, and logged in a few lines
however many there are.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from kafka08.common import SASL, Endpoint
from kafka08.errors import ConfigError
from kafka08.network.client_login import SaslConnector
from kafka08.network.connection import Handle
from kafka08.network.failures import Failures
from kafka08.network.login import LoginFailed, Mechanisms, ServerLogin
from kafka08.network.peer import Peer, Session
from kafka08.network.server import Login
from kafka08.protocol.later_schemas import ServedVersions
from kafka08.runtime import Runtime, SocketConnector
from kafka08.security import jaas
from kafka08.security.mechanisms import Side
from kafka08.security.plain import PLAIN, PlainServer
from kafka08.security.scram import HASHES, ScramServer, nonce_of
from kafka08.security.sides import check_module, client_side
from kafka08.server.access.scram_credentials import Find, ScramCredentials
from kafka08.server.requests.dispatch import Parts
from kafka08.settings.broker import BrokerConfig
from zk.client import ZkClient

MECHANISMS = (PLAIN, *HASHES)

_ENABLED = "sasl.enabled.mechanisms"
_INTER_BROKER = "sasl.mechanism.inter.broker.protocol"
_JAAS = "sasl.jaas.config"
_MAX_REAUTH = "connections.max.reauth.ms"


class LoginSettings:
    """The settings about logins. Raises ConfigError for what makes no sense.

    ``NoLogins`` stands for them on a broker that has no listener with logins.
    """

    def __init__(self, config: BrokerConfig) -> None:
        listeners = config.resolved_listeners()
        self._config = config
        # The PLAIN users of each listener with logins; none if it does not take PLAIN.
        self.users: dict[str, dict[str, str]] = {}
        self.mechanisms: dict[str, tuple[str, ...]] = {}
        # The lifetime of sessions of each listener, by mechanism; 0: they have no end.
        self.lifetimes_ms: dict[str, dict[str, int]] = {}
        for each in listeners.bound:
            if each.protocol in SASL:
                self._read(each.listener)
        self.inter_broker = self._read_inter_broker(listeners.inter_broker)

    def credentials(
        self, zk: ZkClient, end: Callable[[Collection[Session]], object]
    ) -> ScramCredentials | None:
        """Those in ZooKeeper; ``end`` ends sessions. None if no listener takes them."""
        taken = {name for names in self.mechanisms.values() for name in names}
        return None if taken.isdisjoint(HASHES) else ScramCredentials(zk, end)

    def _read(self, listener: str) -> None:
        config = self._config.of_listener(listener)
        names = tuple(name.upper() for name in config.sasl_enabled_mechanisms)
        if not names:
            raise ConfigError(f"{_ENABLED} has no value, and the listener {listener} needs one.")
        for name in names:
            if name not in MECHANISMS:
                raise ConfigError(
                    f"{_ENABLED} has {name}, which is not one of {', '.join(MECHANISMS)}."
                )
        self.mechanisms[listener] = names
        self.lifetimes_ms[listener] = {name: self._lifetime_ms(listener, name) for name in names}
        self.users[listener] = self._module(listener, PLAIN).users if PLAIN in names else {}

    def _lifetime_ms(self, listener: str, mechanism: str) -> int:
        """``listener.name.LISTENER.MECHANISM.connections.max.reauth.ms`` comes first."""
        config = self._config.of_listener(listener)
        key = f"{mechanism.lower()}.{_MAX_REAUTH}"
        text = self._config.listener_name.get(listener.lower(), {}).get(key)
        if text is None:
            return config.connections_max_reauth_ms
        described = config.settings()["connections_max_reauth_ms"]
        found: int = described._replace(key=f"listener.name.{listener.lower()}.{key}").parse(text)
        return found

    def _module(self, listener: str, mechanism: str) -> jaas.LoginModule:
        """The login module of a listener and mechanism."""
        own = self._config.listener_name.get(listener.lower(), {})
        short = f"{mechanism.lower()}.{_JAAS}"
        key = f"listener.name.{listener.lower()}.{short}"
        text = own.get(short)
        if text is None:
            text = self._config.of_listener(listener).sasl_jaas_config
        if text is None:
            raise ConfigError(f"{key} has no value, and {mechanism} needs one.")
        module = jaas.parse(text, key)
        check_module(mechanism, module, key)
        return module

    def _read_inter_broker(self, listener: Endpoint) -> Callable[[], Side] | None:
        """Makes the broker's own side of a login at other brokers."""
        if listener.protocol not in SASL:
            return None
        mechanism = self.inter_broker_mechanism
        if mechanism not in self.mechanisms[listener.listener]:
            raise ConfigError(
                f"{_INTER_BROKER} is {mechanism}, and {_ENABLED} of the listener "
                f"{listener.listener} does not have it."
            )
        module = self._module(listener.listener, mechanism)
        return client_side(mechanism, module, f"{mechanism.lower()}.{_JAAS}")

    @property
    def inter_broker_mechanism(self) -> str:
        return self._config.sasl_mechanism_inter_broker_protocol.upper()

    def connector(self, connector: SocketConnector) -> SocketConnector:
        """``connector``, and a login on each connection if the listener of brokers wants one."""
        if self.inter_broker is None:
            return connector
        return SaslConnector(connector, self.inter_broker_mechanism, self.inter_broker)

    def by_listener(
        self,
        runtime: Runtime,
        credentials: ScramCredentials | None,
        versions: Callable[[], Sequence[ServedVersions]],
        failures: Failures,
    ) -> dict[str, Login]:
        """The login of each listener that wants one. ``credentials``: what ``credentials`` gave.
        ``versions``: of the APIs that are served after a login."""
        logins = Logins(self._config, runtime, versions, failures)
        return {
            listener: partial(
                logins.begin, self._sides(listener, credentials), self.lifetimes_ms[listener]
            )
            for listener in self.mechanisms
        }

    def _sides(self, listener: str, credentials: ScramCredentials | None) -> Mechanisms:
        made: dict[str, Callable[[], Side]] = {}
        for name in self.mechanisms[listener]:
            if name == PLAIN:
                made[name] = partial(PlainServer, self.users[listener])
            else:
                assert credentials is not None
                made[name] = partial(_scram, name, partial(credentials.find, name))
        return made


def _scram(mechanism: str, find: Find) -> Side:
    return ScramServer(mechanism, find, nonce_of(secrets.token_bytes(32)))


class Logins:
    """Begins the logins of connections."""

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        versions: Callable[[], Sequence[ServedVersions]],
        failures: Failures,
    ) -> None:
        self._runtime = runtime
        self._delay = config.connection_failed_authentication_delay_ms / 1000
        self._versions = versions
        self._failures = failures

    def begin(
        self, mechanisms: Mechanisms, lifetimes_ms: Mapping[str, int], peer: Peer, serve: Handle
    ) -> Handle:
        login = ServerLogin(peer, serve, mechanisms, self._versions, lifetimes_ms)
        return partial(self._handle, login)

    def _handle(self, login: ServerLogin, frame: memoryview, address: str) -> Parts | None:
        try:
            return login.handle(frame, address)
        except LoginFailed as error:
            self._failures.login_failed(address.rpartition(":")[0], str(error))
            self._runtime.sleep(self._delay)
            raise
