"""Settings of topics, kept as ZooKeeper has them, and applied to logs while they are in use.

Mirrors kafka.server.TopicConfigManager: /config/changes holds numbered notifications naming a
topic; the settings themselves are in /config/topics. Each notification above the highest one
applied is applied, in order of number (0.8.2.2 sorts the first list only and can skip some).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from kafka08 import admin
from kafka08.common import TopicPartition
from kafka08.config import BrokerConfig, LogConfig
from kafka08.errors import KafkaError
from kafka08.log.log import Log
from kafka08.runtime import Runtime
from kafka08.server.watched_children import WatchedChildren
from zk import znodes
from zk.client import ZkClient
from zk.errors import NoNodeError, SessionExpiredError, ZkError

logger = logging.getLogger("kafka.server.TopicConfigManager")

NOTIFICATION_EXPIRY_MS = 15 * 60 * 1000


class TopicConfigManager:
    """The settings that topics override, applied to their logs.

    ``logs`` is the live mapping of open logs; their ``config`` is replaced when it changes.
    """

    def __init__(
        self,
        config: BrokerConfig,
        runtime: Runtime,
        zk: ZkClient,
        logs: Mapping[TopicPartition, Log],
    ) -> None:
        self._default = LogConfig.from_broker(config)
        self._clock = runtime.clock
        self._zk = zk
        self._logs = logs
        self._applied = -1
        self.changes = WatchedChildren(
            runtime,
            zk,
            znodes.TOPIC_CONFIG_CHANGES,
            "topic-configs",
            self._apply_changes,
            logger,
            "Topic configs not read",
        )

    def start(self) -> None:
        """Apply what is pending and follow what comes."""
        self.changes.start()

    def stop(self) -> None:
        self.changes.stop()

    def session_expired(self) -> None:
        """The session's watches are gone: read the notifications again, which arms new ones."""
        self.changes.read_again()

    def log_config(self, topic: str) -> LogConfig:
        """The settings of a topic's logs; the defaults where its own make no sense.

        The end of a session does not make this fail: the caller is handling a LeaderAndIsr, which
        the controller will not send again.
        """
        try:
            return self._default.override(admin.fetch_topic_config(self._zk, topic))
        except SessionExpiredError:
            return self.log_config(topic)
        except (KafkaError, ValueError) as error:
            if isinstance(error, ZkError):
                raise
            logger.error("Ignoring the configuration of topic %s: %s", topic, error)
            return self._default

    def _apply_changes(self, names: Sequence[str]) -> None:
        for number, name in sorted(_numbered(names)):
            if number > self._applied:
                self._apply(znodes.config_change_path(name))
                self._applied = number
            self._purge(znodes.config_change_path(name))

    def _apply(self, path: str) -> None:
        try:
            topic = znodes.decode_config_change(path, self._zk.get(path)[0])
        except NoNodeError:
            return
        except znodes.MalformedNodeError as error:
            logger.error("Ignoring a change of configuration: %s", error)
            return
        logs = [log for key, log in self._logs.items() if key.topic == topic]
        if logs:
            config = self.log_config(topic)
            for log in logs:
                log.config = config
            logger.info(
                "Processed topic config change %s for topic %s, setting new config to %s.",
                path, topic, config,
            )  # fmt: skip

    def _purge(self, path: str) -> None:
        """Remove a notification after every broker has had time to see it."""
        stat = self._zk.exists(path)
        if stat is not None and self._clock.millis() - stat.ctime > NOTIFICATION_EXPIRY_MS:
            self._zk.delete_if_exists(path)


def _numbered(names: Iterable[str]) -> list[tuple[int, str]]:
    found = []
    for name in names:
        try:
            found.append((znodes.config_change_number(name), name))
        except (KafkaError, ValueError):
            logger.warning("Ignoring %s among the configuration changes", name)
    return found
