"""The page that shows what would follow if brokers died now."""

from __future__ import annotations

from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from kafka08.common import TopicPartition
from kafka08.console.failures.replica_ends import read_ends
from kafka08.console.failures.summary import facts_of, summary
from kafka08.console.failures.what_if import Below, LostCopy, NewLeader, Orphan, what_if
from kafka08.console.forms import FieldError, whole
from kafka08.console.pages.cluster import state_of
from kafka08.console.site import Visit
from kafka08.errors import KafkaError

_SHOWN = 500
"""Rows of a table: JSON has all."""
_MOST_BROKERS = 1000


def what_if_page(visit: Visit, broker_id: int) -> Response:
    """``?brokers=1,2``: others that die at the same time."""
    state = state_of(visit)
    ids = [broker_id, *_others(visit)]
    missing = [id_ for id_ in ids if id_ not in state.brokers]
    if missing:
        raise NotFound(f"There is no broker {missing[0]}.")
    if not state.told:
        raise KafkaError("No broker answers: leaders and replicas in sync are unknown")
    facts = facts_of(visit, state)
    found = what_if(facts, ids)
    unsure = {each.tp: each.candidates for each in found.elected if not each.is_known}
    if unsure:
        ends = read_ends(unsure, visit.site.browser.call_broker)
        found = what_if(facts._replace(replica_ends=ends), ids)
    data = {
        "brokers": found.brokers,
        "down": found.down,
        "controller_moves": found.controller_moves,
        "defaults": facts.defaults,
        "new_leaders": [_leader_data(each) for each in found.elected],
        "without_leader": [_named(each.tp, each) for each in found.leaderless],
        "below_min_isr": [_named(each.tp, each) for each in found.below_min_isr],
        "lost_with_disk": [_named(each.tp, each) for each in found.lost_with_disk],
        "coordinators": found.coordinators,
        "transactional_ids": found.transactional_ids,
        "groups": found.groups,
        "spread": found.spread,
    }
    return visit.answer(
        "what_if.html",
        data,
        asked=visit.request.args.get("brokers", ""),
        broker_id=broker_id,
        found=found,
        is_last=not found.spread,
        most=_SHOWN,
        state=state,
        summary=summary(found),
    )


def _others(visit: Visit) -> list[int]:
    """Raises FieldError."""
    words = [word.strip() for word in visit.request.args.get("brokers", "").split(",")]
    if len(words) > _MOST_BROKERS:
        raise FieldError("brokers", f"at most {_MOST_BROKERS} brokers")
    return [whole(word, "brokers") for word in words if word]


def _named(tp: TopicPartition, row: NewLeader | Orphan | Below | LostCopy) -> dict[str, object]:
    """A row whose first field is its partition, for programs."""
    values = dict(zip(row._fields[1:], row[1:], strict=True))
    return {"topic": tp.topic, "partition": tp.partition, **values}


def _leader_data(row: NewLeader) -> dict[str, object]:
    return {**_named(row.tp, row), "is_unclean": bool(row.candidates)}
