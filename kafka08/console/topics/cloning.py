"""The form that makes a topic like another one, without its messages."""

from __future__ import annotations

from urllib.parse import quote

from werkzeug.wrappers import Response

from kafka08 import admin
from kafka08.common import INTERNAL_TOPICS
from kafka08.console.forms import FieldError, reason_of
from kafka08.console.pages.cluster import topic_of
from kafka08.console.site import Visit
from kafka08.console.topics.marks import check_mark
from kafka08.errors import AdminOperationError, ConfigError, InvalidTopicError, TopicExistsError

_OF_REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
"""Settings that name the replicas of one topic."""


def clone(visit: Visit, name: str) -> Response:
    """With as many partitions and replicas, placed as those of a new topic are, and with its own
    settings."""
    view = topic_of(visit, name)
    copy = visit.request.form.get("copy", "").strip()
    check_mark(visit, name)
    if name in INTERNAL_TOPICS:
        raise ValueError("An internal topic cannot be cloned.")
    zk, factor = visit.site.zk, view.replication_factor
    live = len(admin.live_broker_ids(zk))
    if factor > live:
        raise ValueError(f"It has {factor} replicas, and {live} brokers are up.")
    own = admin.fetch_topic_config(zk, name)
    config = {key: value for key, value in own.items() if key not in _OF_REPLICAS}
    try:
        assignment = admin.create_topic(zk, copy, len(view.partitions), factor, config)
    except (InvalidTopicError, TopicExistsError) as error:
        raise FieldError("copy", reason_of(error)) from None
    except (AdminOperationError, ConfigError) as error:
        raise ValueError(f"Topic {name} cannot be cloned: {reason_of(error)}") from None
    after = {"of": name, "assignment": assignment, "settings": config}
    visit.record("clone topic", copy, None, after)
    visit.site.observer.look()
    return visit.done(f"/topics/{quote(copy)}", f"Topic {copy} was made like {name}.")
