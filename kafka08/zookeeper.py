"""How sessions with ZooKeeper are secured, as the settings say.

The login comes from ``zookeeper.jaas.config``, or as in Kafka from a JAAS file that KAFKA_OPTS
names: its section ``Client``, or the one of ``-Dzookeeper.sasl.clientconfig``.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping

from kafka08.errors import ConfigError
from kafka08.log4j import system_properties
from kafka08.network.tls import Tls, client_context
from kafka08.security import jaas
from kafka08.security.jaas import DIGEST_MODULE, LoginModule
from kafka08.settings.secret_files import warn_if_open
from kafka08.settings.zookeeper import JAAS_CONFIG, ZooKeeperSecurity
from zk.access import Hidden, NodeAccess

_FILE, _SECTION = "java.security.auth.login.config", "zookeeper.sasl.clientconfig"


def access_of(settings: ZooKeeperSecurity, environ: Mapping[str, str] | None = None) -> NodeAccess:
    """Raises ConfigError."""
    context = _context(settings) if settings.zookeeper_ssl_client_enable else None
    login = _login(settings, os.environ if environ is None else environ)
    certified = context is not None and settings.zookeeper_ssl_keystore_location is not None
    if settings.zookeeper_set_acl and login is None and not certified:
        raise ConfigError(
            f"zookeeper.set.acl is true, and there is no login ({JAAS_CONFIG}) and no certificate "
            "(zookeeper.ssl.keystore.location) to which the nodes would belong."
        )
    return NodeAccess(context, login, settings.zookeeper_set_acl)


def _context(settings: ZooKeeperSecurity) -> Callable[[], ssl.SSLContext]:
    try:
        tls = Tls(settings.ssl(), client_context)
    except ConfigError as error:
        raise ConfigError(f"zookeeper.{error}") from None

    def current() -> ssl.SSLContext:
        tls.reload()
        return tls.context

    return current


def _login(settings: ZooKeeperSecurity, environ: Mapping[str, str]) -> Hidden | None:
    if settings.zookeeper_jaas_config is not None:
        return _digest(jaas.parse(settings.zookeeper_jaas_config, JAAS_CONFIG), JAAS_CONFIG)
    options = system_properties(environ)
    path = options.get(_FILE)
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        warn_if_open(path, "passwords")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{_FILE}: cannot read {path}: {reason}.") from None
    module = jaas.section(text, options.get(_SECTION, "Client"), path)
    return None if module is None else _digest(module, path)


def _digest(module: LoginModule, where: str) -> Hidden:
    if module.name != DIGEST_MODULE:
        raise ConfigError(f"{where}: {module.name} is not {DIGEST_MODULE}, the one login there is.")
    if not module.username or not module.password:
        raise ConfigError(f"{where} has no username or no password.")
    if ":" in module.username:
        raise ConfigError(f"{where} has a colon in the username.")
    return Hidden(f"{module.username}:{module.password}")
