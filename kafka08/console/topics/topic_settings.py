"""The settings of a topic, with the values that hold without them, and the form that changes
them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from werkzeug.wrappers import Response

from kafka08 import admin
from kafka08.console.pages.cluster import state_of, topic_of
from kafka08.console.site import Visit
from kafka08.console.topics.marks import check_mark, mark_of
from kafka08.console.topics.setting_fields import (
    BUILT_IN,
    Default,
    own_settings,
    setting_rows,
)
from kafka08.errors import KafkaError
from kafka08.protocol import admin_schemas as a

logger = logging.getLogger("kafka.console.TopicSettings")


def settings(visit: Visit, name: str) -> Response:
    """Each setting, with the controls to change it for users who may."""
    topic_of(visit, name)
    mark = mark_of(visit, name)
    own = admin.fetch_topic_config(visit.site.zk, name)
    broker_id, told = _told(visit, name)
    rows = setting_rows(own, told)
    return visit.answer(
        "settings.html",
        {"topic": name, "broker": broker_id, "settings": rows},
        mark=mark,
        name=name,
    )


def change_settings(visit: Visit, name: str) -> Response:
    """Changes those that are not as they were."""
    topic_of(visit, name)
    check_mark(visit, name)
    before = admin.fetch_topic_config(visit.site.zk, name)
    after = own_settings(visit.request.form, before)
    if after == before:
        return visit.done(f"/topics/{name}/settings", "No setting was changed.")
    admin.change_topic_config(visit.site.zk, name, after)
    visit.record("change settings", name, before, after)
    return visit.done(f"/topics/{name}/settings", f"The settings of {name} were changed.")


def _told(visit: Visit, name: str) -> tuple[int | None, Mapping[str, Default]]:
    """The broker that said what holds for a topic without own settings, and what it said; the
    controller if it can. None if there is no such broker: those of 0.8.2.2 do not say it."""
    broker_id = state_of(visit).asked
    if broker_id is None:
        return None, {}
    asked = a.DescribedResource(a.TOPIC_RESOURCE, name, None)
    request = a.DescribeConfigsRequestV1([asked], include_synonyms=True)
    try:
        response = visit.site.browser.call_broker(broker_id, request)
    except (OSError, KafkaError) as error:
        logger.info("Broker %d did not return the settings of %s: %s", broker_id, name, error)
        return None, {}
    found = {
        entry.name: default
        for resource in response.resources
        for entry in resource.entries
        if (default := _default(entry, broker_id))
    }
    return (broker_id, found) if found else (None, {})


def _default(entry: a.ConfigEntry, broker_id: int) -> Default | None:
    """None for a setting that brokers do not know."""
    for _, value, source in entry.synonyms:
        if source != a.TOPIC_CONFIG:
            return Default(value, BUILT_IN if source == a.DEFAULT_CONFIG else f"broker {broker_id}")
    return None
