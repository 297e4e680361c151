"""Forms that create, change and delete topics, and send one message."""

from __future__ import annotations

import random
from functools import partial
from urllib.parse import quote

from werkzeug.exceptions import Conflict
from werkzeug.wrappers import Response

from kafka08 import admin
from kafka08.client import requests
from kafka08.common import INTERNAL_TOPICS, TopicPartition
from kafka08.console.brokers.asked_settings import asked_settings
from kafka08.console.forms import FieldError, content, header_lines, topic_settings, whole
from kafka08.console.pages.cluster import state_of, topic_of
from kafka08.console.site import Visit
from kafka08.console.topics.emptying import obstacle
from kafka08.console.topics.marks import check_mark, mark_of
from kafka08.errors import raise_for_code
from kafka08.message.record_sets import encode_records
from kafka08.message.sets import encode_set
from kafka08.producer.encoding import encode_headers
from kafka08.producer.partitioners import murmur2_partitioner
from kafka08.protocol.negotiation import NoApiVersionsError
from zk.errors import NodeExistsError

_DELETION = "delete.topic.enable"
_MANY = 100_000
_ACKS = (("1", "the leader"), ("all", "all replicas in sync"))
_BY_KEY = "by the key, as producers choose it"
_TIMEOUT_MS = 3000


def create_form(visit: Visit) -> Response:
    return visit.render("create.html", brokers=admin.live_broker_ids(visit.site.zk))


def create(visit: Visit) -> Response:
    form, zk = visit.request.form, visit.site.zk
    name = form.get("name", "").strip()
    config = topic_settings(form.get("settings", ""), "settings")
    by_hand = form.get("assignment", "").strip()
    if by_hand:
        assignment = admin.parse_replica_assignment(by_hand)
        unknown = {id for ids in assignment.values() for id in ids} - set(admin.live_broker_ids(zk))
        if unknown:
            raise FieldError("assignment", f"no live broker has the ids {sorted(unknown)}")
        admin.create_topic_with_assignment(zk, name, assignment, config)
    else:
        partitions = whole(form.get("partitions", ""), "partitions", 1, _MANY)
        factor = whole(form.get("factor", ""), "factor", 1, _MANY)
        live = len(admin.live_broker_ids(zk))
        if factor > live:
            raise FieldError("factor", f"{live} brokers are up; each can have one replica")
        assignment = admin.create_topic(zk, name, partitions, factor, config)
    visit.record("create topic", name, None, {"assignment": assignment, "settings": config})
    visit.site.observer.look()
    return visit.done(f"/topics/{quote(name)}", f"Topic {name} was created.")


def _deletes(visit: Visit) -> bool | None:
    """The delete.topic.enable of the controller, which deletes topics. None if not reported:
    one of 0.8.2.2, or one that does not let the console see its settings."""
    state = state_of(visit)
    broker = state.brokers.get(-1 if state.controller is None else state.controller)
    if broker is None or not broker.serves_later_apis:
        return None
    call = partial(visit.site.browser.call_broker, broker.id)
    told = asked_settings(call, broker.id, _DELETION).get(_DELETION)
    return None if told is None else told != "false"


def change_form(visit: Visit, name: str) -> Response:
    view = topic_of(visit, name)
    mark = mark_of(visit, name)
    lags = visit.site.observer.lags
    groups = [
        group
        for group, lag in (lags.groups.items() if lags else ())
        if any(tp.topic == name for tp in lag.partitions)
    ]
    return visit.render(
        "change.html",
        deletes=_deletes(visit),
        groups=groups,
        internal=name in INTERNAL_TOPICS,
        mark=mark,
        name=name,
        obstacle=obstacle(state_of(visit), name, view),
        view=view,
    )


def add_partitions(visit: Visit, name: str) -> Response:
    before = len(topic_of(visit, name).partitions)
    wanted = whole(visit.request.form.get("partitions", ""), "partitions", 1, _MANY)
    check_mark(visit, name)
    if name in INTERNAL_TOPICS:
        raise ValueError("The number of partitions of an internal topic cannot be changed.")
    admin.add_partitions(visit.site.zk, name, wanted)
    visit.record("add partitions", name, before, wanted)
    visit.site.observer.look()
    return visit.done(f"/topics/{name}", f"Topic {name} has {wanted} partitions.")


def delete(visit: Visit, name: str) -> Response:
    """Marks the topic: brokers with delete.topic.enable delete it."""
    view = topic_of(visit, name)
    if visit.request.form.get("name") != name:
        raise FieldError("name", f"Type the name of the topic, {name}, to delete it.")
    check_mark(visit, name)
    deletes = _deletes(visit)
    if deletes is False:
        raise Conflict(
            f"Topic {name} was not marked for deletion: {_DELETION} is false at the controller."
        )
    if deletes is None and not visit.request.form.get("deletes"):
        raise FieldError(
            "deletes",
            f"Topic {name} was not marked for deletion: the controller does not report its "
            f"{_DELETION}. Check it, and confirm that it is true.",
        )
    try:
        admin.delete_topic(visit.site.zk, name)
    except NodeExistsError:
        raise Conflict(f"Topic {name} is marked for deletion already.") from None
    visit.record("delete topic", name, {"partitions": len(view.partitions)}, None)
    visit.site.observer.look()
    return visit.done(
        f"/topics/{name}",
        f"Topic {name} is marked for deletion. Brokers delete it if {_DELETION} is true.",
    )


def send_form(visit: Visit, name: str) -> Response:
    return visit.render(
        "send.html",
        acks=_ACKS,
        kinds=[(each, each) for each in ("text", "hex")],
        name=name,
        partitions=[("", _BY_KEY), *((str(n), str(n)) for n in topic_of(visit, name).partitions)],
    )


def send(visit: Visit, name: str) -> Response:
    form = visit.request.form
    acks = form.get("acks", "1")
    if acks not in dict(_ACKS):
        raise FieldError("acks", f"one of {', '.join(dict(_ACKS))}")
    key: bytes | None = content(form, "key")
    if not key and not form.get("empty_key"):
        key = None
    value = None if form.get("is_null") else content(form, "value")
    if value is None and form.get("value"):
        raise FieldError("is_null", "there is a value as well: send one of the two")
    headers = header_lines(form.get("headers", ""), "headers")
    tp = TopicPartition(name, _partition(visit, name, key))
    number = -1 if acks == "all" else int(acks)
    if headers:
        now, packed = visit.site.clock.millis(), encode_headers(headers)
        data = encode_records([value], [key], [now], [packed])
    else:
        data = encode_set([(key, value)], 0)
    request = requests.produce_request({tp: data}, number, _TIMEOUT_MS)
    try:
        answer = visit.site.browser.call_leader(tp, request, api_versions=bool(headers))
    except NoApiVersionsError:
        raise FieldError("headers", "the leader is a broker that stores no headers") from None
    entry = requests.flatten(answer.topics)[tp]
    raise_for_code(entry.error)
    sizes = {
        "key": None if key is None else len(key),
        "value": None if value is None else len(value),
        "headers": len(headers),
    }
    visit.record("send message", str(tp), None, {"offset": entry.base_offset, "bytes": sizes})
    return visit.done(
        f"/topics/{name}/send", f"The message is at offset {entry.base_offset} of {tp}."
    )


def _partition(visit: Visit, name: str, key: bytes | None) -> int:
    """The chosen one, or that in which Kafka's Java producer puts messages with this key; any, with
    a leader if possible, without a key."""
    partitions = topic_of(visit, name).partitions
    text = visit.request.form.get("partition", "")
    if not text:
        if key is not None:
            return murmur2_partitioner(key, len(partitions))
        led = [number for number, each in partitions.items() if not each.is_offline]
        return random.choice(led or list(partitions))
    number = whole(text, "partition")
    if number not in partitions:
        raise FieldError("partition", f"{name} has no partition {number}")
    return number
