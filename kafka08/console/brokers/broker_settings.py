"""The settings of a broker, where each value is from, and the form that changes those that can be
changed while brokers run: for this broker, and for all."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from kafka08.console.brokers.setting_rows import (
    BROKER,
    CLUSTER,
    SCOPES,
    BrokerSettingRow,
    Changes,
    changes,
    setting_rows,
)
from kafka08.console.cluster_state import BrokerView
from kafka08.console.forms import FieldError, PartlyDoneError
from kafka08.console.pages.cluster import state_of
from kafka08.console.site import Visit
from kafka08.console.topics.marks import check_mark_of, mark_of_nodes
from kafka08.errors import AdminOperationError, KafkaError, meaning_of
from kafka08.protocol import admin_schemas as a
from kafka08.security.users import ADMIN
from zk import entities

logger = logging.getLogger("kafka.console.BrokerSettings")

_SHOWN = {BROKER: "this broker", CLUSTER: "all brokers"}


def settings(visit: Visit, broker_id: int) -> Response:
    """Each setting, with fields for those that users who may can change; or why there are none."""
    broker = _broker(visit, broker_id)
    mark = mark_of_nodes(visit, *_nodes(broker_id)) if visit.may(ADMIN) else ""
    rows: list[BrokerSettingRow] | None = None
    reason = ""
    try:
        rows = _told(visit, broker)
    except KafkaError as error:
        reason = str(error)
        logger.info("The settings of broker %d are not known: %s", broker_id, reason)
    return visit.answer(
        "broker_settings.html",
        {"broker": broker_id, "reason": reason or None, "settings": rows},
        mark=mark,
        scopes=tuple(_SHOWN.items()),
    )


def change_settings(visit: Visit, broker_id: int) -> Response:
    """Changes those that are not as they were. Raises PartlyDoneError if the broker took only a
    part."""
    broker = _broker(visit, broker_id)
    check_mark_of(visit, f"A setting of broker {broker_id}", *_nodes(broker_id))
    rows = _told(visit, broker)
    wanted = changes(visit.request.form, rows)
    if not any(wanted.values()):
        return visit.done(f"/brokers/{broker_id}/settings", "No setting was changed.")
    refusals = _change(visit, broker_id, wanted)
    _record(visit, broker_id, rows, {s: wanted[s] for s in SCOPES if s not in refusals})
    if refusals:
        raise _refused(wanted, refusals)
    return visit.done(
        f"/brokers/{broker_id}/settings", f"The settings of broker {broker_id} were changed."
    )


def _broker(visit: Visit, broker_id: int) -> BrokerView:
    """Raises NotFound."""
    broker = state_of(visit).brokers.get(broker_id)
    if broker is None:
        raise NotFound(f"There is no broker {broker_id}.")
    return broker


def _nodes(broker_id: int) -> list[str]:
    """The nodes that a change is written to."""
    names = (str(broker_id), entities.DEFAULT)
    return [entities.config_path(f"{entities.BROKERS}/{name}") for name in names]


def _told(visit: Visit, broker: BrokerView) -> list[BrokerSettingRow]:
    """The settings as the broker tells them. Raises KafkaError if it does not."""
    if not broker.is_live:
        raise AdminOperationError(f"Broker {broker.id} is down: only it knows its settings")
    if not broker.serves_later_apis:
        raise AdminOperationError(
            f"Broker {broker.id} is of 0.8.2.2, which does not report its settings: they are in "
            "its server.properties"
        )
    asked = a.DescribedResource(a.BROKER_RESOURCE, str(broker.id), None)
    request = a.DescribeConfigsRequestV1([asked], include_synonyms=True)
    try:
        [found] = visit.site.browser.call_broker(broker.id, request).resources
    except OSError as error:
        raise AdminOperationError(
            f"Broker {broker.id} did not return its settings: {error}"
        ) from None
    if found.error:
        raise AdminOperationError(
            f"Broker {broker.id} does not show its settings to the console: "
            f"{found.message or meaning_of(found.error)}"
        )
    return setting_rows(found.entries)


def _change(visit: Visit, broker_id: int, wanted: Changes) -> dict[str, str]:
    """Why the broker refused the changes of a scope, by scope."""
    names = {BROKER: str(broker_id), CLUSTER: ""}
    resources = [
        a.ChangedResource(
            a.BROKER_RESOURCE,
            names[scope],
            [
                a.ConfigChange(key, a.DELETE_CONFIG if value is None else a.SET_CONFIG, value)
                for key, value in asked.items()
            ],
        )
        for scope, asked in wanted.items()
        if asked
    ]
    request = a.IncrementalAlterConfigsRequest(resources, False)
    answer = visit.site.browser.call_broker(broker_id, request)
    scopes = {name: scope for scope, name in names.items()}
    return {
        scopes[each.resource_name]: each.message or meaning_of(each.error)
        for each in answer.resources
        if each.error
    }


def _record(
    visit: Visit,
    broker_id: int,
    rows: list[BrokerSettingRow],
    done: Mapping[str, dict[str, str | None]],
) -> None:
    """The changes that were made, for the audit log; nothing if there are none."""
    if not any(done.values()):
        return
    own = {row.name: row for row in rows}
    before = {
        _SHOWN[scope]: {name: own[name].own(scope) for name in values}
        for scope, values in done.items()
        if values
    }
    after = {_SHOWN[scope]: values for scope, values in done.items() if values}
    visit.record("change broker settings", f"broker {broker_id}", before, after)


def _refused(wanted: Changes, refusals: Mapping[str, str]) -> KafkaError | FieldError:
    """Beside the field that the broker names, if nothing was changed."""
    told = ". ".join(f"For {_SHOWN[scope]}: {text}" for scope, text in refusals.items())
    if any(values for scope, values in wanted.items() if scope not in refusals):
        done = next(_SHOWN[scope] for scope in SCOPES if scope not in refusals)
        return PartlyDoneError(f"The settings for {done} were changed. {told}")
    for scope, text in refusals.items():
        named = [name for name in wanted[scope] if name in text]
        if named or len(wanted[scope]) == 1:
            return FieldError(f"{scope}.{(named or list(wanted[scope]))[0]}", text)
    return AdminOperationError(told)
