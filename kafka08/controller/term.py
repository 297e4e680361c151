"""The values that the parts of one term as controller have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kafka08.common import TopicPartition
from kafka08.controller.batch import ControllerBrokerRequestBatch, Outgoing
from kafka08.controller.context import ControllerContext
from kafka08.controller.store import ControllerStore


class Term(NamedTuple):
    """``number`` counts the terms of this broker and marks their events. ``send`` queues requests
    for brokers, which the parts collect in ``batch``."""

    number: int
    controller_id: int
    context: ControllerContext
    store: ControllerStore
    batch: ControllerBrokerRequestBatch
    send: Callable[[list[Outgoing]], None]

    def send_batch(self) -> None:
        """Send what was collected since the batch was cleared."""
        self.send(self.batch.drain())

    def send_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition] | None
    ) -> None:
        """Send UpdateMetadata to ``broker_ids`` with ``partitions`` (None: all)."""
        self.batch.clear()
        self.batch.add_update_metadata(broker_ids, partitions)
        self.send_batch()
