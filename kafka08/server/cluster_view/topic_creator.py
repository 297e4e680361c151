"""Creates topics when a client first asks for them (auto.create.topics.enable)."""

from __future__ import annotations

import logging

from kafka08 import admin
from kafka08.common import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition, validate_topic
from kafka08.errors import (
    AdminOperationError,
    InvalidTopicError,
    TopicExistsError,
    UnsupportedForMessageFormatError,
)
from kafka08.server.cluster_view.originals import Originals
from kafka08.settings.broker import BrokerConfig
from zk.client import ZkClient
from zk.errors import ZkError
from zk.registry import live_brokers
from zk.znodes import MalformedNodeError

logger = logging.getLogger("kafka.server.KafkaApis")


class TopicCreator:
    """Creates topics in ZooKeeper with the broker's defaults; the controller does the rest."""

    def __init__(self, zk: ZkClient, config: BrokerConfig, originals: Originals) -> None:
        self._zk = zk
        self._config = config
        self._originals = originals

    def create_on_demand(self, topic: str) -> bool:
        """Create ``topic`` if that is allowed; False if not. Existing already is success.

        Internal topics are created even with auto.create.topics.enable off, with their own
        settings and no more replicas than there are live brokers. Raises InvalidTopicError,
        UnsupportedForMessageFormatError for the topic of transactions while a broker of 0.8.2.2 is
        registered, and what ZooKeeper and the placement of replicas raise.
        """
        config = self._config
        if topic == OFFSETS_TOPIC:
            replicas = self._at_most_live(config.offsets_topic_replication_factor)
            settings = {
                "segment.bytes": str(config.offsets_topic_segment_bytes),
                "cleanup.policy": "compact",
            }
            self._create(topic, config.offsets_topic_num_partitions, replicas, settings)
            return True
        if topic == TRANSACTIONS_TOPIC:
            if self._originals.are_registered():
                raise UnsupportedForMessageFormatError(
                    "No transactions while a broker of 0.8.2.2 is registered"
                )
            replicas = self._at_most_live(config.transaction_state_log_replication_factor)
            settings = {
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "cleanup.policy": "compact",
                "min.insync.replicas": str(min(config.transaction_state_log_min_isr, replicas)),
                "unclean.leader.election.enable": "false",
            }
            self._create(topic, config.transaction_state_log_num_partitions, replicas, settings)
            return True
        if not config.auto_create_topics_enable:
            return False
        validate_topic(topic)
        self._create(topic, config.num_partitions, config.default_replication_factor, {})
        return True

    def _at_most_live(self, replicas: int) -> int:
        alive = len(live_brokers(self._zk))
        return min(replicas, alive) if alive else 1

    def may_exist(self, topic: str) -> bool:
        """Whether the topic exists and is not marked for deletion; True until it is known."""
        try:
            validate_topic(topic)
            return not self._zk.connected or (
                admin.topic_exists(self._zk, topic)
                and not admin.is_marked_for_deletion(self._zk, topic)
            )
        except InvalidTopicError:
            return False
        except ZkError:
            return True

    def may_have(self, key: TopicPartition) -> bool:
        """Whether a partition exists, also of a topic that is being deleted; True until it is
        known. The cache of a broker that has just started may still lack it."""
        try:
            assigned = admin.fetch_assignment(self._zk, key.topic)
        except (ZkError, MalformedNodeError):
            return True
        return assigned is not None and key.partition in assigned

    def _create(
        self, topic: str, partitions: int, replicas: int, topic_config: dict[str, str]
    ) -> None:
        try:
            admin.create_topic(self._zk, topic, partitions, replicas, topic_config)
        except TopicExistsError:
            return
        except AdminOperationError:
            # The creation may fail, for instance if too few brokers are live (0.8.2.2 answers -1
            # then too).
            if admin.topic_exists(self._zk, topic):
                return
            raise
        logger.info(
            "[KafkaApi-%d] Auto creation of topic %s with %d partitions and replication factor %d "
            "is successful!", self._config.broker_id, topic, partitions, replicas,
        )  # fmt: skip
