"""How a broker about to stop hands its leaderships over (KafkaServer.controlledShutdown)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafka08.errors import KafkaError
from kafka08.network.channel import Channel, Connectors
from kafka08.protocol.schemas import ControlledShutdownRequest
from kafka08.settings.broker import BrokerConfig
from zk.client import ZkClient
from zk.election import NO_CONTROLLER, read_controller
from zk.errors import ZkConnectionError
from zk.registry import read_broker

logger = logging.getLogger("kafka.server.KafkaServer")


def controlled_shutdown(
    config: BrokerConfig,
    connectors: Connectors,
    zk: ZkClient,
    wait: Callable[[float], object],
) -> bool:
    """Ask the controller to move our leaderships; True once none is left.

    Tries controlled.shutdown.max.retries times; ``wait(seconds)`` passes the time between tries.
    Without ZooKeeper the controller cannot be found, and no try is made.
    """
    logger.info("[Kafka Server %d], Starting controlled shutdown", config.broker_id)
    for attempt in range(config.controlled_shutdown_max_retries):
        if attempt:
            wait(config.controlled_shutdown_retry_backoff_ms / 1000)
            logger.warning(
                "[Kafka Server %d], Retrying controlled shutdown after the previous attempt "
                "failed...", config.broker_id,
            )  # fmt: skip
        if not zk.connected:
            break
        try:
            if _ask(config, connectors, zk):
                logger.info("[Kafka Server %d], Controlled shutdown succeeded", config.broker_id)
                return True
        except ZkConnectionError:
            break
        except (OSError, KafkaError) as error:
            logger.warning(
                "[Kafka Server %d], Error during controlled shutdown, possibly because leader "
                "movement took longer than the configured socket.timeout.ms: %s",
                config.broker_id, error,
            )  # fmt: skip
    logger.warning(
        "[Kafka Server %d], Proceeding to do an unclean shutdown as all the controlled shutdown "
        "attempts failed", config.broker_id,
    )  # fmt: skip
    return False


def _ask(config: BrokerConfig, connectors: Connectors, zk: ZkClient) -> bool:
    leader = read_controller(zk).leader
    controller = None if leader == NO_CONTROLLER else read_broker(zk, leader)
    if controller is None:
        logger.info("[Kafka Server %d], No controller to ask", config.broker_id)
        return False
    with Channel(
        controller.host,
        controller.port,
        timeout_ms=config.controller_socket_timeout_ms,
        runtime=connectors(leader),
    ) as channel:
        response = channel.call(ControlledShutdownRequest(config.broker_id))
    # The code comes first: 0.8.2.2 sends an empty list with its refusals.
    if response.error == 0 and not response.partitions_remaining:
        return True
    logger.info(
        "[Kafka Server %d], Remaining partitions to move: %s (error %d)", config.broker_id,
        ",".join(f"[{topic},{partition}]" for topic, partition in response.partitions_remaining),
        response.error,
    )  # fmt: skip
    return False
