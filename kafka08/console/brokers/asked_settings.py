"""Some settings of a broker, as far as it lets the console see them."""

from __future__ import annotations

import logging

from kafka08.client.requests import Call
from kafka08.errors import KafkaError
from kafka08.protocol import admin_schemas as a

logger = logging.getLogger("kafka.console.BrokerSettings")


def asked_settings(call: Call, broker_id: int, *names: str) -> dict[str, str]:
    """Those of ``names`` that the broker returns; none if it does not answer or refuses. ``call``
    asks the broker."""
    asked = a.DescribedResource(a.BROKER_RESOURCE, str(broker_id), list(names))
    try:
        response = call(a.DescribeConfigsRequest([asked]))
    except (OSError, KafkaError) as error:
        logger.info("Broker %d did not return %s: %s", broker_id, ", ".join(names), error)
        return {}
    entries = [entry for found in response.resources for entry in found.entries]
    return {e.name: e.value for e in entries if e.name in names and e.value is not None}
