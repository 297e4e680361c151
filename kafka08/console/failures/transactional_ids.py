"""The number of transactional ids that each partition of ``__transaction_state`` keeps: its leader
coordinates them."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from functools import partial

from kafka08.client.transactions import coordinated
from kafka08.common import TRANSACTIONS_TOPIC, offsets_partition_for
from kafka08.console.cluster_state import ClusterState
from kafka08.console.failures.defaults import Ask
from kafka08.errors import KafkaError

logger = logging.getLogger("kafka.console.TransactionalIds")


def read_ids(state: ClusterState, ask: Ask) -> dict[int, int]:
    """Of the partitions whose leaders say it; each leader is asked once. ``ask`` negotiates
    versions."""
    view = state.topics.get(TRANSACTIONS_TOPIC)
    led: dict[int, list[int]] = defaultdict(list)
    for number, each in (view.partitions if view else {}).items():
        broker = state.brokers.get(each.leader)
        if broker is not None and broker.serves_later_apis:
            led[broker.id].append(number)
    found = {}
    for id_, numbers in led.items():
        try:
            listed = coordinated(partial(ask, id_))
        except (OSError, KafkaError) as error:
            logger.info("Broker %d did not list its transactional ids: %s", id_, error)
            continue
        count = len(view.partitions) if view else 0
        ids = Counter(offsets_partition_for(each.transactional_id, count) for each in listed)
        found.update({number: ids[number] for number in numbers})
    return found
