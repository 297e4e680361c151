"""One cluster that the console is connected to."""

from __future__ import annotations

from kafka08.client.security import runtime_for
from kafka08.console.clusters.settings import ClusterSettings
from kafka08.console.config import CLIENT_ID
from kafka08.console.site import Site
from kafka08.errors import ConfigError
from kafka08.groups.admin import GroupAdmin
from kafka08.runtime import Runtime
from kafka08.zookeeper import access_of
from zk.client import ZkClient


class OpenCluster:
    """Its sessions with ZooKeeper and brokers, its observer, and what its pages share (``site``).

    Several of these share nothing, so that one that does not answer keeps no other one waiting.
    Nothing is connected before ``connect``. Raises ConfigError.
    """

    def __init__(self, settings: ClusterSettings, runtime: Runtime) -> None:
        self._runtime = runtime
        try:
            self._open(settings)
        except ConfigError as error:
            if not settings.name:
                raise
            raise ConfigError(f"Cluster {settings.name}: {error}") from None

    def _open(self, settings: ClusterSettings) -> None:
        name, config, security = settings
        self._clients = runtime_for(security, self._runtime)
        self._zk = ZkClient(
            config.zookeeper_connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            call_timeout_ms=min(config.zookeeper_session_timeout_ms, config.request_timeout_ms),
            gevent=True,
            create_chroot=False,
            access=access_of(config),
        )
        self._groups = GroupAdmin(
            self._zk,
            timeout_ms=config.request_timeout_ms,
            request_timeout_ms=config.request_timeout_ms,
            client_id=CLIENT_ID,
            security=security,
            runtime=self._clients,
        )
        self.site = Site(config, self._zk, self._groups, self._clients, name=name)

    def connect(self) -> None:
        """Raises ZkConnectionError if that takes longer than its timeout."""
        self._zk.start()

    def connect_soon(self) -> None:
        """In the background, however long ZooKeeper is away."""
        self._zk.start_soon()

    def close(self) -> None:
        self.site.observer.stop()
        self._groups.close()
        self._zk.close()
        if self._clients is not self._runtime:
            self._clients.close()
