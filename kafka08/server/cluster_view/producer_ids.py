"""Ids for idempotent producers, unique in the cluster: blocks of them are claimed in ZooKeeper.

Mirrors kafka.coordinator.transaction.ZkProducerIdManager of later releases and its node.
"""

from __future__ import annotations

import logging

from kafka08.errors import KafkaError
from kafka08.runtime import Runtime
from zk.client import ZkClient
from zk.errors import BadVersionError, NodeExistsError
from zk.znodes import MalformedNodeError, decode_json, encode_json

logger = logging.getLogger("kafka.coordinator.transaction.ZkProducerIdManager")

PATH = "/latest_producer_id_block"
BLOCK = 1000
_LAST = (1 << 63) - 1


class ProducerIds:
    """Takes a new block whenever the last one is used up. May wait for ZooKeeper."""

    def __init__(self, runtime: Runtime, zk: ZkClient, broker_id: int) -> None:
        self._zk = zk
        self._broker_id = broker_id
        self._lock = runtime.lock()
        self._next = self._end = 0

    def take(self) -> int:
        """An id that was not given to any producer in the cluster. Raises ZkError,
        MalformedNodeError, KafkaError."""
        with self._lock:
            if self._next == self._end:
                self._next = self._claim()
                self._end = self._next + BLOCK
            self._next += 1
            return self._next - 1

    def _claim(self) -> int:
        """Claim a block of ids; returns its first."""
        while True:
            found = self._zk.get_if_exists(PATH)
            start = 0 if found is None else _block_end(found[0]) + 1
            if start + BLOCK > _LAST:
                raise KafkaError("There are no more producer ids")
            data = self._block(start)
            try:
                if found is None:
                    self._zk.create(PATH, data)
                else:
                    self._zk.set(PATH, data, version=found[1].version)
            except (BadVersionError, NodeExistsError):
                continue  # another broker was faster
            logger.info("Producer ids %d to %d are of this broker", start, start + BLOCK - 1)
            return start

    def _block(self, start: int) -> bytes:
        return encode_json(
            {
                "version": 1,
                "broker": self._broker_id,
                "block_start": str(start),
                "block_end": str(start + BLOCK - 1),
            }
        )


def _block_end(data: bytes) -> int:
    block = decode_json(PATH, data)
    try:
        end = int(block["block_end"])
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedNodeError(PATH, "it has no block_end") from error
    if end < 0:
        raise MalformedNodeError(PATH, "its block_end is negative")
    return end
