"""Settings of topics, kept as ZooKeeper has them, and applied to logs while they are in use.

Mirrors the part of kafka.server.TopicConfigManager that knows topics; ``config_changes`` tells it
of changes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafka08 import admin
from kafka08.common import TopicPartition
from kafka08.errors import KafkaError
from kafka08.log.log import Log
from kafka08.settings.broker import BrokerConfig
from kafka08.settings.topic import LogConfig
from zk.client import ZkClient
from zk.errors import SessionExpiredError, ZkError

logger = logging.getLogger("kafka.server.TopicConfigManager")


class TopicConfigs:
    """The settings that topics override, applied to their logs.

    ``logs`` is the live mapping of open logs; their ``config`` is replaced when it changes.
    """

    def __init__(
        self, config: BrokerConfig, zk: ZkClient, logs: Mapping[TopicPartition, Log]
    ) -> None:
        self._default = LogConfig.from_broker(config)
        self._zk = zk
        self._logs = logs

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

    def changed(self, entity: str) -> None:
        """Apply the settings of ``topics/TOPIC`` to its logs. Raises ZkError."""
        topic = entity.partition("/")[2]
        logs = [log for key, log in self._logs.items() if key.topic == topic]
        if logs:
            config = self.log_config(topic)
            for log in logs:
                log.config = config
            logger.info(
                "Processed topic config change for topic %s, setting new config to %s.",
                topic, config,
            )  # fmt: skip
